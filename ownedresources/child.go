package ownedresources

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is one object that a T owns, declared as a function of the T. Use [Build], [BuildOrError] or [BuildUnstructured]
// to make one, and [Ensure] to apply it.
type Child[T client.Object] struct {
	build   func(T) (client.Object, error)
	sample  client.Object // an empty object of the child's kind
	options childOptions
}

// Build returns a child that f builds. f returns the desired object, or nil if there should be none. f must return the same
// for the same owner, have no side effects, and copy nothing from the live object. The namespace may be left empty; it is
// then the owner's.
//
// A set prunes only kinds that it builds. To prune the children of a kind that is no longer needed, keep a Build that
// returns nil for as long as such children may exist.
func Build[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) P, options ...ChildOption) Child[T] {
	return BuildOrError(func(owner T) (P, error) { return f(owner), nil }, options...)
}

// BuildOrError is [Build] for a function that may fail. [ChildSet.Reconcile] returns its error. The other children of the
// set are applied nevertheless, but nothing is pruned.
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
	if childType, optionType := reflect.TypeFor[P](), child.options.createOnlyType; optionType != nil && !childType.AssignableTo(optionType) {
		child.build = func(T) (client.Object, error) {
			return nil, fmt.Errorf("child %s: its CreateOnly is for %s: give that a function of %[1]s", childType, optionType)
		}
	}
	return child
}

// BuildUnstructured is [BuildOrError] for a kind without a Go type. It sets the kind of the object that f returns. A
// manager's client reads unstructured objects past its cache, with one request each, unless its option
// Cache.Unstructured is set.
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

// ChildOption changes how one child is applied: [FormerManagers], [Adopt], [Recreate] or [CreateOnly].
type ChildOption func(*childOptions)

type childOptions struct {
	formerManagers []string
	adopt          bool
	recreate       bool
	createOnly     func(client.Object) // unsets the fields that are applied at creation only; nil for none
	createOnlyType reflect.Type        // the type that createOnly takes, nil without it
}

// FormerManagers takes over the fields of a child that an older operator wrote with Create and Update, under one of these
// field managers. The next apply removes fields that the older operator set and that are no longer desired; without this
// option they stay for ever.
//
// client-go's default field manager is the name of the binary: "manager" in the images of kubebuilder and operator-sdk,
// "main" or "__debug_bin" of an operator that was run from its sources.
func FormerManagers(names ...string) ChildOption {
	return func(o *childOptions) { o.formerManagers = append(o.formerManagers, names...) }
}

// Adopt takes over an object of the child's name that has no controller. Without it such an object is left alone, with an
// [*OwnershipError]. An object that has another controller is left alone, with one exception: if that controller was an
// earlier owner of the same name, the garbage collector deletes the object, or [Ensure] does after a minute.
func Adopt() ChildOption {
	return func(o *childOptions) { o.adopt = true }
}

// Recreate deletes the child and creates it again if the API server refuses a change, as it does for immutable fields. It is
// not needed where live fields of others contradict the desired ones: those are replaced without it. Everything that the
// child holds is lost. Before that, a dry run asks whether the new object would be accepted. A process recreates a child at
// most once per change: if the API server refuses the change again, the error is that refusal. Until the old
// child is gone, the error is a [*WaitingError].
func Recreate() ChildOption {
	return func(o *childOptions) { o.recreate = true }
}

// CreateOnly applies some fields only when the child is created. Afterwards they are not compared, and keep their values. The
// function unsets these fields in the object that it is given. They may be anywhere but inside a list. P is the type of the
// child, or an interface that it implements; with any other type [ChildSet.Reconcile] returns an error.
func CreateOnly[P client.Object](unset func(P)) ChildOption {
	return func(o *childOptions) {
		o.createOnly = func(obj client.Object) { unset(obj.(P)) }
		o.createOnlyType = reflect.TypeFor[P]()
	}
}
