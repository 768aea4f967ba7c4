package kind

import (
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// withoutManagers is a type converter that leaves out an object's managed fields. No field manager can own them, and merging and comparing
// them takes more time than the rest of the object.
type withoutManagers struct{ managedfields.TypeConverter }

func (w withoutManagers) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		metadata, has := o.Object["metadata"].(map[string]any)
		if has && metadata["managedFields"] != nil {
			object = &unstructured.Unstructured{Object: without(o.Object, "metadata")}
			object.(*unstructured.Unstructured).Object["metadata"] = without(metadata, "managedFields")
		}
	case client.Object:
		if o.GetManagedFields() != nil {
			bare := reflect.New(reflect.TypeOf(o).Elem())
			bare.Elem().Set(reflect.ValueOf(o).Elem())
			bare.Interface().(client.Object).SetManagedFields(nil)
			object = bare.Interface().(client.Object)
		}
	}
	return w.TypeConverter.ObjectToTyped(object, options...)
}

// without returns a copy of a map without one field. The values are not copied.
func without(m map[string]any, field string) map[string]any {
	rest := make(map[string]any, len(m))
	for name, value := range m {
		if name != field {
			rest[name] = value
		}
	}
	return rest
}
