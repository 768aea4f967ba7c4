package memoryserver

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kindOfList finds the kind of a list's items and the Go type in which the list holds them.
func (s *Server) kindOfList(list client.ObjectList) (*kind, reflect.Type, error) {
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
		return nil, nil, fmt.Errorf("the scheme has a list of %s and not the kind itself: register both", gvk)
	}
	return k, reflect.PointerTo(as), nil
}

// list gives shared views of what the store held at a revision. The caller holds the lock.
func (s *Server) list(k *kind, as reflect.Type, sel selection, revision int64) ([]client.Object, error) {
	var found []client.Object
	for _, r := range s.table(k).order {
		v := r.at(revision)
		if v == nil || !sel.matches(v.object) {
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

// fill writes copies of objects into a list. Items of Go types have apiVersion and kind only as
// they come from a cache.
func fill(list client.ObjectList, objects []client.Object, revision int64, named bool) error {
	items := make([]runtime.Object, len(objects))
	for i, object := range objects {
		item := object.DeepCopyObject().(client.Object)
		if !named && !isUntyped(item) {
			item.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		items[i] = item
	}
	if err := meta.SetList(list, items); err != nil {
		return err
	}
	list.SetResourceVersion(strconv.FormatInt(revision, 10))
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	return nil
}
