package ownedresources

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is one object that a T owns, as a function of it. Make it with [Build] or [TryBuild].
type Child[T client.Object] struct {
	build   func(T) (client.Object, error)
	typ     reflect.Type // the struct, not the pointer
	options childOptions
}

type childOptions struct{ formerManagers []string }

// ChildOption changes how one child is treated.
type ChildOption func(*childOptions)

// FormerManagers takes over the fields of children that an older operator wrote by Create
// and Update. Its field manager was named after its binary: "manager" in kubebuilder's and
// operator-sdk's images, "main" or "__debug_bin" when it was run from sources. Fields that
// it set and that are no longer wanted go; without this option they would stay for ever.
func FormerManagers(names ...string) ChildOption {
	return func(o *childOptions) { o.formerManagers = append(o.formerManagers, names...) }
}

// Build declares a child. The function gives the object as it should be, with nothing of the
// live one in it: it must not have side effects and give the same for the same owner. A nil
// object is not wanted.
func Build[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) P, options ...ChildOption) Child[T] {
	return TryBuild(func(owner T) (P, error) { return f(owner), nil }, options...)
}

// TryBuild is [Build] for a function that may find that the object cannot be built. Its error
// is the step's; the other children are applied nevertheless.
func TryBuild[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) (P, error), options ...ChildOption) Child[T] {
	child := Child[T]{typ: reflect.TypeFor[C]()}
	child.build = func(owner T) (client.Object, error) {
		if obj, err := f(owner); err != nil || obj != nil {
			return obj, err
		}
		return nil, nil
	}
	for _, o := range options {
		o(&child.options)
	}
	return child
}

func (c *Child[T]) empty() client.Object { return reflect.New(c.typ).Interface().(client.Object) }
