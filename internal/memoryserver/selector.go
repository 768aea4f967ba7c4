package memoryserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selection says which objects of a kind a list or a watch is about.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(k *kind, options *client.ListOptions) (selection, error) {
	sel := selection{namespace: options.Namespace, labels: options.LabelSelector, fields: options.FieldSelector}
	if !k.namespaced {
		sel.namespace = ""
	}
	if sel.fields == nil {
		return sel, nil
	}
	for _, r := range sel.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return selection{}, apierrors.NewBadRequest(fmt.Sprintf("field label not supported: %s", r.Field))
		}
	}
	return sel, nil
}

func (sel selection) matches(object client.Object) bool {
	switch {
	case object == nil:
		return false
	case sel.namespace != "" && sel.namespace != object.GetNamespace():
		return false
	case sel.labels != nil && !sel.labels.Empty() && !sel.labels.Matches(labels.Set(object.GetLabels())):
		return false
	case sel.fields == nil || sel.fields.Empty():
		return true
	}
	return sel.fields.Matches(fields.Set{"metadata.name": object.GetName(), "metadata.namespace": object.GetNamespace()})
}
