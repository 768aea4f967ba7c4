package state

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contentOf returns an object as a JSON value. An object of a Go type loses its managed fields: nothing here compares them, and
// they take up to half of the time of the conversion.
func contentOf(obj runtime.Object) (map[string]any, error) {
	typed, ok := obj.(client.Object)
	if _, untyped := obj.(runtime.Unstructured); ok && !untyped && typed.GetManagedFields() != nil {
		without := reflect.New(reflect.TypeOf(obj).Elem())
		without.Elem().Set(reflect.ValueOf(obj).Elem())
		typed = without.Interface().(client.Object)
		typed.SetManagedFields(nil)
		obj = typed
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
