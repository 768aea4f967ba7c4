package ownedresources

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/opblocks/opblocks/internal/compare"
)

// Hash gives a short text that changes when v does, for annotations: "v1:" and 32
// hexadecimal digits. It is the same in every process, on every platform and under every
// version of Go; the order of a map or of a struct's fields does not count, nor how a
// quantity was written.
//
// A *corev1.Secret is hashed by UID and resource version, never by content: an annotation
// can be read by more people than a Secret. So is a *metav1.PartialObjectMetadata, which has
// no content. To hash several, see [Versions]. The error is a value's that has no JSON form, or
// in which there is a Secret.
//
// What a value hides when it is encoded does not count either: give Hash the version of the Secret in
// place of a password from it.
func Hash(v any) (string, error) {
	switch obj := v.(type) {
	case *corev1.Secret:
		if v = nil; obj != nil {
			v = version(obj)
		}
	case corev1.Secret:
		v = version(&obj)
	case *metav1.PartialObjectMetadata:
		if v = nil; obj != nil {
			v = version(obj)
		}
	case *unstructured.Unstructured:
		if obj != nil && isSecret(obj.Object) {
			v = version(obj)
		}
	}
	if holdsSecret(reflect.ValueOf(v)) {
		return "", fmt.Errorf("hash of %T: it would tell of the content of Secrets: give it Versions of them", v)
	}
	encoded, err := compare.AppendValue(nil, v)
	if err != nil {
		return "", fmt.Errorf("hash of %T: %w", v, err)
	}
	s := sumOf(encoded)
	return "v1:" + string(s[:]), nil
}

// Versions gives what tells the states of some objects apart without their content, for [Hash]:
// each one's name, UID and resource version. A pod template with that hash in an annotation
// rolls its pods when a ConfigMap or Secret that they use is changed or created anew.
func Versions(objs ...metav1.Object) [][3]string {
	versions := make([][3]string, len(objs))
	for i, obj := range objs {
		versions[i] = version(obj)
	}
	slices.SortFunc(versions, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	return versions
}

func version(obj metav1.Object) [3]string {
	return [3]string{obj.GetName(), string(obj.GetUID()), obj.GetResourceVersion()}
}

// SetHash sets the annotation key of obj to the [Hash] of v, in memory, and reports whether
// that changed it. On a pod template (&deployment.Spec.Template) it rolls the pods when v changes.
func SetHash(obj metav1.Object, key string, v any) (changed bool, err error) {
	hash, err := Hash(v)
	if err != nil || obj.GetAnnotations()[key] == hash {
		return false, err
	}
	annotations := maps.Clone(obj.GetAnnotations()) // the map may be the cache's
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = hash
	obj.SetAnnotations(annotations)
	return true, nil
}

// HashChanged reports whether the annotation key of obj is not the [Hash] of v: it was never
// set, or v has changed since.
func HashChanged(obj metav1.Object, key string, v any) (bool, error) {
	hash, err := Hash(v)
	return err == nil && obj.GetAnnotations()[key] != hash, err
}
