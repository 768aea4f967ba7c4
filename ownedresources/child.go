package ownedresources

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned/set"
)

// Child describes what a T owns of one kind: an object of type C, or a list of objects. A function builds these objects from
// the T and from declared inputs, and from nothing else. Make a Child with [Build], [BuildOrError], [BuildEach], [BuildFrom],
// [BuildEachFrom] or [BuildApply], and apply it with [Ensure].
//
// The function must return the same objects for the same owner and inputs. It must have no side effects, read no clock and no
// global, and copy nothing from the live object. It must not change the owner.
//
// The methods of Child that return a Child change the child itself. Call them before [Ensure].
type Child[T, C client.Object] struct{ child *set.Child }

// AnyChild is a [Child] whose objects may have any type.
type AnyChild[T client.Object] interface {
	isChildOf(owner T)
	engine() *set.Child
}

func (c *Child[T, C]) isChildOf(T) {}

// engine returns the child without its type parameters.
func (c *Child[T, C]) engine() *set.Child {
	if c == nil {
		return nil
	}
	return c.child
}

// pointerTo is a pointer to the struct C of an API object. If C is appsv1.Deployment, P is *appsv1.Deployment. Go infers both from the
// function that the user passes.
type pointerTo[C any] interface {
	*C
	client.Object
}

// Build returns a child that f builds. f returns the desired object. If no object is desired, f returns nil. The namespace may be left
// empty; it is then the owner's.
//
// A set prunes only kinds that it builds. To prune the children of a kind that is no longer needed, keep a Build that
// returns nil for as long as such children may exist.
func Build[T client.Object, C any, P pointerTo[C]](f func(owner T) P) *Child[T, P] {
	return newChild[T, P](P(new(C)), f, func(r *set.Reconciliation) error {
		addObject(r, f(r.Object.(T)))
		return nil
	})
}

// BuildOrError is [Build] for a function that may fail. [ChildSet.Reconcile] returns its error. The other children of
// the set are still applied, but nothing is pruned.
func BuildOrError[T client.Object, C any, P pointerTo[C]](f func(owner T) (P, error)) *Child[T, P] {
	return newChild[T, P](P(new(C)), f, func(r *set.Reconciliation) error {
		obj, err := f(r.Object.(T))
		if err == nil {
			addObject(r, obj)
		}
		return err
	})
}

// BuildEach returns a list of children of one kind, identified by their names. An object that is not in the list any more is pruned, also
// if the list becomes empty, and also after a restart. If two objects have the same name, neither is applied.
func BuildEach[T client.Object, C any, P pointerTo[C]](f func(owner T) ([]P, error)) *Child[T, P] {
	return newChild[T, P](P(new(C)), f, func(r *set.Reconciliation) error {
		objs, err := f(r.Object.(T))
		if err == nil {
			addObjects(r, objs)
		}
		return err
	})
}

// BuildFrom returns a child that f builds from the owner and an input. f is called with the value of the input, unless
// the input cannot be read: see [From] and [Child.KeepWhileMissing]. f may return nil, like the function of [Build].
func BuildFrom[T client.Object, S, C any, P pointerTo[C]](input *Input[T, S], f func(owner T, value S) (P, error)) *Child[T, P] {
	child := newChild[T, P](P(new(C)), f, func(r *set.Reconciliation) error {
		value, err := input.value(r)
		if err != nil {
			return err
		}
		obj, err := f(r.Object.(T), value)
		if err == nil {
			addObject(r, obj)
		}
		return err
	})
	child.child.Inputs = inputs(input)
	return child
}

// BuildEachFrom is like [BuildEach], for a function that also gets the value of an input: see [BuildFrom].
func BuildEachFrom[T client.Object, S, C any, P pointerTo[C]](input *Input[T, S], f func(owner T, value S) ([]P, error)) *Child[T, P] {
	child := newChild[T, P](P(new(C)), f, func(r *set.Reconciliation) error {
		value, err := input.value(r)
		if err != nil {
			return err
		}
		objs, err := f(r.Object.(T), value)
		if err == nil {
			addObjects(r, objs)
		}
		return err
	})
	child.child.Inputs = inputs(input)
	return child
}

// newChild returns a child of the kind of sample. build builds its objects by calling f, the user's function. newChild itself only takes
// the name of f.
func newChild[T, P client.Object](sample client.Object, f any, build func(*set.Reconciliation) error) *Child[T, P] {
	return &Child[T, P]{set.NewChild(sample, f, build)}
}

// addObject adds an object unless it is nil. An interface that holds a nil pointer is not nil, so the type is needed here.
func addObject[C any, P pointerTo[C]](r *set.Reconciliation, obj P) {
	if obj != nil {
		r.Add(obj)
	}
}

// addObjects adds the objects of a list that are not nil.
func addObjects[C any, P pointerTo[C]](r *set.Reconciliation, objs []P) {
	for _, obj := range objs {
		addObject(r, obj)
	}
}

// untyped returns the children without their type parameters. It keeps nil children: the set returns an error for
// them.
func untyped[T client.Object](children []AnyChild[T]) []*set.Child {
	all := make([]*set.Child, len(children))
	for i, c := range children {
		if c != nil {
			all[i] = c.engine()
		}
	}
	return all
}

// BuildApply is [BuildOrError] for an apply configuration, such as one of k8s.io/client-go/applyconfigurations. sample
// is an empty object of the same kind, such as &appsv1.Deployment{}: the live object is read in this type, from the
// cache.
//
// An apply configuration says exactly which fields are desired: a zero that it sets is applied, where a Go struct
// leaves it out. The methods of the child take its objects as *unstructured.Unstructured.
//
//	ownedresources.BuildApply(&appsv1.Deployment{}, func(app *App) (*appsv1ac.DeploymentApplyConfiguration, error) { … })
func BuildApply[T client.Object, C any, P interface {
	*C
	runtime.ApplyConfiguration
}](sample client.Object, f func(owner T) (P, error)) *Child[T, *unstructured.Unstructured] {
	child := newChild[T, *unstructured.Unstructured](sample, f, func(r *set.Reconciliation) error {
		configuration, err := f(r.Object.(T))
		if err != nil || configuration == nil {
			return err
		}
		return r.AddConfiguration(configuration)
	})
	child.child.Configuration = true
	return child
}
