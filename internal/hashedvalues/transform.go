package hashedvalues

import (
	"maps"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mark is the key of an annotation that each object with hashes has. The key is not valid in Kubernetes, on purpose: see the package
// comment.
const mark = "opblocks.dev/hashed: read this object with the manager's client, since its values are hashes in the cache"

// withoutKeys is the value of the annotation mark if the keys of the object were removed together with their values. If the object has kept
// its keys, and hashes as their values, the annotation is empty.
const withoutKeys = "keys"

// lastApplied is an annotation in which kubectl keeps all that it has applied, including the values.
const lastApplied = corev1.LastAppliedConfigAnnotation

// IsHashed reports whether an object has hashes in place of its long values. It copies nothing, because every read calls it.
func IsHashed(obj client.Object) (hashed bool) {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		_, hashed = obj.Annotations[mark]
	case *corev1.Secret:
		_, hashed = obj.Annotations[mark]
	case *unstructured.Unstructured:
		metadata, _ := obj.Object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		_, hashed = annotations[mark]
	}
	return hashed
}

// WithoutMark returns annotations without the annotation that an object with hashes has. It is for reads of only metadata. It does not
// change the map.
func WithoutMark(annotations map[string]string) map[string]string {
	if _, hashed := annotations[mark]; !hashed {
		return annotations
	}
	if len(annotations) == 1 {
		return nil
	}
	annotations = maps.Clone(annotations)
	delete(annotations, mark)
	return annotations
}

// hash replaces each long value of an object by a hash, if the object's keys, values and last-applied annotation together have more than
// bound bytes. If the object has so many keys that it would still have more bytes, hash removes the keys and the values. It does not change
// an object that already has hashes.
func hash(obj client.Object, bound int) {
	fields := valuesOf(obj)
	if fields == nil || IsHashed(obj) {
		return
	}
	annotations := obj.GetAnnotations()
	whole, small := len(annotations[lastApplied]), 0
	for _, f := range fields {
		w, s := f.size()
		whole, small = whole+w, small+s
	}
	if whole <= bound {
		return
	}
	lost := ""
	for _, f := range fields {
		if small > bound {
			lost = withoutKeys
			f.drop()
		} else {
			f.hash()
		}
	}
	marked := maps.Clone(annotations)
	if marked == nil {
		marked = map[string]string{}
	}
	delete(marked, lastApplied)
	marked[mark] = lost
	obj.SetAnnotations(marked)
}

// Transform returns a function that replaces the long values by hashes in Secrets and ConfigMaps of more than bound bytes, and then calls
// next. next may be nil.
func Transform(bound int, next toolscache.TransformFunc) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		if object, ok := obj.(client.Object); ok {
			hash(object, bound)
		}
		if next != nil {
			made, err := next(obj)
			if err != nil {
				return nil, err
			}
			obj = made
		}
		shareMark(obj)
		return obj, nil
	}
}

// onlyMark is the annotations map that objects share if mark is their only annotation. Nobody writes to the objects of a cache.
var onlyMark = map[string]string{mark: ""}

// shareMark makes an object whose annotations equal onlyMark share that map, to save memory. Call it after everything that writes to the
// object.
func shareMark(obj any) {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		if maps.Equal(obj.Annotations, onlyMark) {
			obj.Annotations = onlyMark
		}
	case *corev1.Secret:
		if maps.Equal(obj.Annotations, onlyMark) {
			obj.Annotations = onlyMark
		}
	}
}

// Options returns a copy of the options of a cache in which each transform function also replaces long values by hashes.
func Options(options cache.Options, bound int) cache.Options {
	options.DefaultTransform = Transform(bound, options.DefaultTransform)
	options.DefaultNamespaces = withTransforms(options.DefaultNamespaces, bound)
	options.ByObject = maps.Clone(options.ByObject)
	for obj, of := range options.ByObject {
		if of.Transform != nil {
			of.Transform = Transform(bound, of.Transform)
		}
		of.Namespaces = withTransforms(of.Namespaces, bound)
		options.ByObject[obj] = of
	}
	return options
}

func withTransforms(namespaces map[string]cache.Config, bound int) map[string]cache.Config {
	namespaces = maps.Clone(namespaces)
	for namespace, of := range namespaces {
		if of.Transform != nil {
			of.Transform = Transform(bound, of.Transform)
			namespaces[namespace] = of
		}
	}
	return namespaces
}

// Restore returns the object with all its values for a live object with hashes, without a request: it replaces the hash of each desired
// value by the value. If a hash remains, because the value has to be changed or belongs to another writer, it returns false. It changes
// neither object. If live has no hashes, Restore returns it unchanged.
func Restore(live, desired client.Object) (whole client.Object, ok bool) {
	if !IsHashed(live) {
		return live, true
	}
	if desired, ok = inFormOf(live, desired); !ok || live.GetAnnotations()[mark] == withoutKeys {
		return nil, false
	}
	if _, wanted := desired.GetAnnotations()[lastApplied]; wanted {
		return nil, false
	}
	whole = shallowCopy(live)
	fields, wanted := valuesOf(whole), valuesOf(desired)
	if len(fields) != len(wanted) {
		return nil, false
	}
	for i, f := range fields {
		if !f.restore(wanted[i]) {
			return nil, false
		}
	}
	whole.SetAnnotations(WithoutMark(live.GetAnnotations()))
	return whole, true
}

// inFormOf converts obj to the Go type that live has.
func inFormOf(live, obj client.Object) (client.Object, bool) {
	if reflect.TypeOf(live) == reflect.TypeOf(obj) {
		return obj, true
	}
	u, untyped := obj.(*unstructured.Unstructured)
	if !untyped {
		return nil, false
	}
	made := reflect.New(reflect.TypeOf(live).Elem()).Interface().(client.Object)
	return made, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, made) == nil
}
