package kind

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	nameField      = "metadata.name"
	namespaceField = "metadata.namespace"
)

// CheckFields returns an error if the selector has a field that selectors of the kind may not use.
func (k *Kind) CheckFields(selector fields.Selector) error {
	for _, r := range selector.Requirements() {
		if _, known := k.Selectable[r.Field]; !known && r.Field != nameField && r.Field != namespaceField {
			return apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return nil
}

// HasFields reports whether the object matches the selector. CheckFields must have accepted the selector.
func (k *Kind) HasFields(obj client.Object, selector fields.Selector) bool {
	set := fields.Set{nameField: obj.GetName(), namespaceField: obj.GetNamespace()}
	var content map[string]any
	for _, r := range selector.Requirements() {
		absent, known := k.Selectable[r.Field]
		if !known {
			continue
		}
		if content == nil {
			content = contentOf(obj)
		}
		set[r.Field] = absent
		if value, found, _ := unstructured.NestedFieldNoCopy(content, strings.Split(r.Field, ".")...); found {
			set[r.Field] = fmt.Sprint(value)
		}
	}
	return selector.Matches(set)
}

// contentOf returns the object as a JSON value. It may share memory with the object.
func contentOf(obj client.Object) map[string]any {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		panic(err) // cannot happen: it is an object of a Kubernetes API
	}
	return content
}
