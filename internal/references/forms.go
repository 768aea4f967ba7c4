package references

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/versions"
)

// Forms says for each kind in which form a reconciler watches it: as typed objects, as unstructured objects, or as metadata.
//
// A cache has one informer for each form of a kind. One informer may be behind another, and an informer that a read has started has no
// event handler. If an event came from one informer and a read used another, the read could return an older object than the event, and no
// later event would correct that. So each kind is watched and read in only one form.
type Forms struct {
	// Epoch counts how often the resource versions of the watched objects went back.
	Epoch versions.Epoch

	scheme  *runtime.Scheme
	watched map[schema.GroupVersionKind]form
	kinds   map[schema.GroupKind]form // the largest form in any version of the kind
	typed   map[reflect.Type]bool     // the Go types of the kinds that are watched as typed objects
	known   sync.Map                  // reflect.Type → knownType: for other types that were read, such as lists
}

// form is the form in which an informer holds objects. If a kind is to be watched in several forms, the largest is used: the last of these
// constants.
type form int

const (
	_ form = iota // not watched
	metadata
	untyped
	typed
)

func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadata
	case runtime.Unstructured:
		return untyped
	}
	return typed
}

// NewForms returns the forms for the watched objects, and for the objects that the references name. If the cache need not hold a referenced
// object as a whole, only its metadata is watched.
func NewForms(scheme *runtime.Scheme, watched []client.Object, references []Reference) (*Forms, error) {
	f := &Forms{
		scheme: scheme, watched: map[schema.GroupVersionKind]form{}, kinds: map[schema.GroupKind]form{}, typed: map[reflect.Type]bool{},
	}
	for _, obj := range watched {
		if err := f.add(obj, formOf(obj)); err != nil {
			return nil, err
		}
	}
	for _, ref := range references {
		of := metadata
		if ref.Cached {
			of = formOf(ref.Object)
		}
		if err := f.add(ref.Object, of); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *Forms) add(obj client.Object, of form) error {
	gvk, err := apiutil.GVKForObject(obj, f.scheme)
	if err != nil {
		return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", obj, err)
	}
	f.watched[gvk] = max(of, f.watched[gvk])
	f.kinds[gvk.GroupKind()] = max(of, f.kinds[gvk.GroupKind()])
	if of == typed {
		f.typed[reflect.TypeOf(obj)] = true
	}
	return nil
}

// source says from where objects are read.
type source int

const (
	server       source = iota
	wholeObjects        // metadata, read from the whole objects in the cache
	cache
)

// knownType says from where objects of a Go type are read, and what their kind is.
type knownType struct {
	from source
	gvk  schema.GroupVersionKind
}

// sourceOf returns from where an object or a list is read. It also returns the kind of the objects, except for a typed object that is read
// from the cache. If no version of the kind is watched, it returns an error.
func (f *Forms) sourceOf(obj runtime.Object) (source, schema.GroupVersionKind, error) {
	t := reflect.TypeOf(obj)
	if f.typed[t] {
		return cache, schema.GroupVersionKind{}, nil
	}
	if known, ok := f.known.Load(t); ok {
		return known.(knownType).from, known.(knownType).gvk, nil
	}
	gvk, err := apiutil.GVKForObject(obj, f.scheme)
	if err != nil {
		return server, gvk, err
	}
	if _, list := obj.(client.ObjectList); list {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	if f.kinds[gvk.GroupKind()] == 0 {
		return server, gvk, fmt.Errorf("read of %s, which no step watches: add reconcile.Watching or reconcile.Reads to the step, so that a change of it triggers a reconcile, or read it with a client of your own", gvk.GroupKind())
	}
	of, watched := formOf(obj), f.watched[gvk]
	from := server
	switch {
	case of == watched:
		from = cache
	case of == metadata && watched != 0:
		from = wholeObjects
	}
	if of == typed { // the other Go types stand for many kinds
		f.known.Store(t, knownType{from, gvk})
	}
	return from, gvk, nil
}

// empty returns an empty object of a kind, in the form in which the kind is watched.
func (f *Forms) empty(gvk schema.GroupVersionKind) (client.Object, error) {
	var obj client.Object
	switch f.watched[gvk] {
	case metadata:
		obj = &metav1.PartialObjectMetadata{}
	case untyped:
		obj = &unstructured.Unstructured{}
	default:
		made, err := f.scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		return made.(client.Object), nil
	}
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	return obj, nil
}

// emptyList returns an empty list for a kind that is watched as whole objects, in the form in which it is watched.
func (f *Forms) emptyList(gvk schema.GroupVersionKind) (client.ObjectList, error) {
	kind := gvk
	kind.Kind += "List"
	if f.watched[gvk] == untyped {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return list, nil
	}
	made, err := f.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return made.(client.ObjectList), nil
}

// Watch watches the kind of an object in the form of the kind. The handler and the predicates get the objects in the form that obj has.
func (f *Forms) Watch(b *ctrl.Builder, obj client.Object, h handler.EventHandler, predicates ...predicate.Predicate) error {
	gvk, err := apiutil.GVKForObject(obj, f.scheme)
	if err != nil {
		return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", obj, err)
	}
	of := formOf(obj)
	if f.watched[gvk] == of {
		b.Watches(obj, h, builder.WithPredicates(predicates...))
		return nil
	}
	watched, err := f.empty(gvk)
	if err != nil {
		return err
	}
	b.Watches(watched, converting{h, predicate.And(predicates...), of, gvk})
	return nil
}

// converting is a handler that converts the objects of events into another form, and then calls the predicate and the handler.
type converting struct {
	handler   handler.EventHandler
	predicate predicate.Predicate
	to        form
	gvk       schema.GroupVersionKind
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

func (c converting) Create(ctx context.Context, e event.CreateEvent, q queue) {
	if e.Object = c.convert(ctx, e.Object); e.Object != nil && c.predicate.Create(e) {
		c.handler.Create(ctx, e, q)
	}
}

func (c converting) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	e.ObjectOld, e.ObjectNew = c.convert(ctx, e.ObjectOld), c.convert(ctx, e.ObjectNew)
	if e.ObjectOld != nil && e.ObjectNew != nil && c.predicate.Update(e) {
		c.handler.Update(ctx, e, q)
	}
}

func (c converting) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	if e.Object = c.convert(ctx, e.Object); e.Object != nil && c.predicate.Delete(e) {
		c.handler.Delete(ctx, e, q)
	}
}

func (c converting) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	if e.Object = c.convert(ctx, e.Object); e.Object != nil && c.predicate.Generic(e) {
		c.handler.Generic(ctx, e, q)
	}
}

// convert returns the object in the form c.to. If the object cannot be converted, it returns nil.
func (c converting) convert(ctx context.Context, obj client.Object) client.Object {
	if c.to == metadata {
		m := meta.AsPartialObjectMetadata(obj)
		m.SetGroupVersionKind(c.gvk)
		return m
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot convert the object of an event", "kind", c.gvk.Kind, "object", client.ObjectKeyFromObject(obj))
		return nil
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(c.gvk)
	return u
}
