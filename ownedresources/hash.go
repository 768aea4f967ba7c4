package ownedresources

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/plan"
)

// Hash gives a short text that changes when v does, for annotations: "v1:" and 32
// hexadecimal digits. It is the same in every process, on every platform and under every
// version of Go; the order of a map or of a struct's fields does not count, nor how a
// quantity was written.
//
// A *corev1.Secret is hashed by UID and resource version, never by content: an annotation
// can be read by more people than a Secret. The error is a value's that has no JSON form.
func Hash(v any) (string, error) {
	if secret, ok := v.(*corev1.Secret); ok && secret != nil {
		v = [2]string{string(secret.UID), secret.ResourceVersion}
	}
	encoded, err := plan.AppendValue(nil, v)
	if err != nil {
		return "", fmt.Errorf("hash of %T: %w", v, err)
	}
	s := sumOf(encoded)
	return "v1:" + string(s[:]), nil
}

// SetHash sets the annotation key of obj to the [Hash] of v, in memory, and reports whether
// that changed it. On a pod template it rolls the pods when v changes.
func SetHash(obj client.Object, key string, v any) (changed bool, err error) {
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
func HashChanged(obj client.Object, key string, v any) (bool, error) {
	hash, err := Hash(v)
	return err == nil && obj.GetAnnotations()[key] != hash, err
}
