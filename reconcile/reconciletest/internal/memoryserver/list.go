package memoryserver

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// kindOfList returns the kind of a list's items, and their Go type in this list.
func (s *Server) kindOfList(list client.ObjectList) (*kind.Kind, reflect.Type, error) {
	gvk, err := apiutil.GVKForObject(list, s.scheme)
	if err != nil {
		return nil, nil, err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	k, err := s.kind(gvk)
	if err != nil {
		return nil, nil, err
	}
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return k, reflect.TypeFor[*unstructured.Unstructured](), nil
	case *metav1.PartialObjectMetadataList:
		return k, reflect.TypeFor[*metav1.PartialObjectMetadata](), nil
	}
	as, known := s.scheme.AllKnownTypes()[gvk]
	if !known {
		return nil, nil, fmt.Errorf("the scheme has the list of %s but not the kind itself: register both", gvk)
	}
	return k, reflect.PointerTo(as), nil
}

// list returns the objects of a kind at a revision, in the Go type as. The objects are shared: nobody may change them. The caller holds the
// lock.
func (s *Server) list(k *kind.Kind, as reflect.Type, sel selection, revision int64) ([]client.Object, error) {
	var found []client.Object
	for _, r := range s.store.table(k).order {
		v := r.at(revision)
		if v == nil {
			continue
		}
		obj, err := s.objectIn(k, v)
		if err != nil {
			return nil, asStatus(err)
		}
		if !sel.matches(obj) {
			continue
		}
		made, err := s.view(k, v, as)
		if err != nil {
			return nil, err
		}
		found = append(found, made)
	}
	return found, nil
}

// fill writes copies of objects into a client's list. Items of Go types get neither apiVersion nor kind, as with a real client.
func fill(list client.ObjectList, objects []client.Object, revision int64) error {
	items := make([]runtime.Object, len(objects))
	for i, object := range objects {
		item := object.DeepCopyObject().(client.Object)
		if !isUntyped(item) {
			item.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		items[i] = item
	}
	return setItems(list, items, revision)
}

// setItems sets the items and the resource version of a list.
func setItems(list client.ObjectList, items []runtime.Object, revision int64) error {
	if err := meta.SetList(list, items); err != nil {
		return err
	}
	list.SetResourceVersion(strconv.FormatInt(revision, 10))
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return nil
}

// selection says which objects of a kind a list or a watch returns.
type selection struct {
	kind      *kind.Kind
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(k *kind.Kind, options *client.ListOptions) (selection, error) {
	sel := selection{kind: k, namespace: options.Namespace, labels: options.LabelSelector, fields: options.FieldSelector}
	if !k.Namespaced {
		sel.namespace = ""
	}
	if sel.fields == nil {
		return sel, nil
	}
	return sel, k.CheckFields(sel.fields)
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
	return sel.kind.HasFields(object, sel.fields)
}

// Selects reports whether the options of a list select the object. The object may be nil. It returns an error if the kind is not served, or
// if selectors of the kind may not use a field in the options.
func (s *Server) Selects(gvk schema.GroupVersionKind, options *client.ListOptions, object client.Object) (bool, error) {
	k, err := s.kind(gvk)
	if err != nil {
		return false, err
	}
	sel, err := newSelection(k, options)
	return err == nil && sel.matches(object), err
}
