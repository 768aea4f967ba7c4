package state

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// contentOf returns an object as a JSON value that the caller may change. An object of a Go type loses its managed fields: nothing here
// compares them, and they take up to half of the time of the conversion.
func contentOf(obj runtime.Object) (map[string]any, error) {
	if untyped, ok := obj.(runtime.Unstructured); ok { // the converter would return the object's own map, which the server has too
		return runtime.DeepCopyJSON(untyped.UnstructuredContent()), nil
	}
	typed, ok := obj.(client.Object)
	if ok && typed.GetManagedFields() != nil {
		without := reflect.New(reflect.TypeOf(obj).Elem())
		without.Elem().Set(reflect.ValueOf(obj).Elem())
		typed = without.Interface().(client.Object)
		typed.SetManagedFields(nil)
		obj = typed
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
