package ownedresources

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is one object that a T owns, as a function of it. Make it with [Build] or [BuildOrError].
type Child[T client.Object] struct {
	build   func(T) (client.Object, error)
	sample  client.Object // an empty object of the child's kind
	options childOptions
}

// Build declares a child. The function gives the object as it should be, with nothing of the
// live one in it: it must not have side effects and give the same for the same owner. A nil
// object is not wanted.
func Build[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) P, options ...ChildOption) Child[T] {
	return BuildOrError(func(owner T) (P, error) { return f(owner), nil }, options...)
}

// BuildOrError is [Build] for a function that may find that the object cannot be built. Its error
// is the step's; the other children are applied nevertheless.
func BuildOrError[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) (P, error), options ...ChildOption) Child[T] {
	child := Child[T]{sample: P(new(C))}
	child.build = func(owner T) (client.Object, error) {
		if obj, err := f(owner); err != nil || obj != nil {
			return obj, err
		}
		return nil, nil
	}
	for _, o := range options {
		o(&child.options)
	}
	if is, of := reflect.TypeFor[P](), child.options.unsets; of != nil && !is.AssignableTo(of) {
		child.build = func(T) (client.Object, error) {
			return nil, fmt.Errorf("child %s: its CreateOnly is for %s: give that a function of %[1]s", is, of)
		}
	}
	return child
}

// BuildUnstructured is [BuildOrError] for a kind without a Go type. Reads of unstructured objects go
// past a manager's cache, with a request each, unless its client has Cache.Unstructured set.
func BuildUnstructured[T client.Object](kind schema.GroupVersionKind, f func(owner T) (*unstructured.Unstructured, error), options ...ChildOption) Child[T] {
	child := BuildOrError(func(owner T) (*unstructured.Unstructured, error) {
		obj, err := f(owner)
		if obj != nil {
			obj.SetGroupVersionKind(kind)
		}
		return obj, err
	}, options...)
	child.sample.GetObjectKind().SetGroupVersionKind(kind)
	return child
}

func (c *Child[T]) empty() client.Object { return c.sample.DeepCopyObject().(client.Object) }
