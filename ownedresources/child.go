package ownedresources

import (
	"fmt"
	"reflect"
	"runtime"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is what a T owns of one kind: an object of type C, or a list of them. It is a pure function of the T and of declared
// inputs. Make one with [Build], [BuildOrError], [BuildEach], [BuildFrom], [BuildEachFrom] or [BuildApply], and apply it with
// [Ensure].
//
// A function that builds must return the same for the same owner and inputs. It must have no side effects, read no
// clock and no global, and copy nothing from the live object. It must not change the owner.
//
// The methods that return the child change it. Call them before [Ensure].
type Child[T, C client.Object] struct{ *child }

// child is a Child without its types.
type child struct {
	build    func(*reconciliation) error // adds what is desired
	function string                      // the name of the function that builds
	sample   client.Object               // an empty object of the child's kind, in the type of its live objects
	inputs   []*input                    // what build reads
	after    []*child
	options  childOptions
	mistake  error // a mistake in a call of one of its methods

	configuration bool // it is built by apply configurations
	inSet         bool // a set has it, so that it must not change any more
}

// AnyChild is a [Child] of whatever type.
type AnyChild[T client.Object] interface {
	isChildOf(owner T)
	engine() *child
}

func (c *Child[T, C]) isChildOf(T) {}

// engine returns the child without its types.
func (c *Child[T, C]) engine() *child {
	if c == nil {
		return nil
	}
	return c.child
}

// Build returns a child that f builds. f returns the desired object, or nil if there should be none. The namespace may be
// left empty; it is then the owner's.
//
// A set prunes only kinds that it builds. To prune the children of a kind that is no longer needed, keep a Build that
// returns nil for as long as such children may exist.
func Build[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) P, options ...ChildOption) *Child[T, P] {
	return newChild[T, P](P(new(C)), f, options, func(r *reconciliation) error {
		addObject(r, f(r.object.(T)))
		return nil
	})
}

// BuildOrError is [Build] for a function that may fail. [ChildSet.Reconcile] returns its error. The other children of
// the set are still applied, but nothing is pruned.
func BuildOrError[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) (P, error), options ...ChildOption) *Child[T, P] {
	return newChild[T, P](P(new(C)), f, options, func(r *reconciliation) error {
		obj, err := f(r.object.(T))
		if err == nil {
			addObject(r, obj)
		}
		return err
	})
}

// BuildEach returns a list of children of one kind, which are told apart by their names. What falls out of the list is
// pruned, also if the list becomes empty, and also after a restart. If two objects have one name, neither is applied.
func BuildEach[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) ([]P, error), options ...ChildOption) *Child[T, P] {
	return newChild[T, P](P(new(C)), f, options, func(r *reconciliation) error {
		objs, err := f(r.object.(T))
		if err == nil {
			addObjects(r, objs)
		}
		return err
	})
}

// BuildFrom returns a child that f builds from the owner and an input. f is called with the value of the input, unless
// the input cannot be read: see [From] and [Child.KeepWhileMissing]. f may return nil, like the function of [Build].
func BuildFrom[T client.Object, S, C any, P interface {
	*C
	client.Object
}](input *Input[T, S], f func(owner T, value S) (P, error), options ...ChildOption) *Child[T, P] {
	child := newChild[T, P](P(new(C)), f, options, func(r *reconciliation) error {
		value, err := input.value(r)
		if err != nil {
			return err
		}
		obj, err := f(r.object.(T), value)
		if err == nil {
			addObject(r, obj)
		}
		return err
	})
	child.inputs = inputs(input)
	return child
}

// BuildEachFrom is [BuildEach] with an input, as [BuildFrom] is [Build] with one.
func BuildEachFrom[T client.Object, S, C any, P interface {
	*C
	client.Object
}](input *Input[T, S], f func(owner T, value S) ([]P, error), options ...ChildOption) *Child[T, P] {
	child := newChild[T, P](P(new(C)), f, options, func(r *reconciliation) error {
		value, err := input.value(r)
		if err != nil {
			return err
		}
		objs, err := f(r.object.(T), value)
		if err == nil {
			addObjects(r, objs)
		}
		return err
	})
	child.inputs = inputs(input)
	return child
}

// newChild returns a child that build builds. build calls f, the user's function. Here only the name of f is used.
func newChild[T, P client.Object](sample client.Object, f any, options []ChildOption, build func(*reconciliation) error) *Child[T, P] {
	c := &child{sample: sample, build: build, function: runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()}
	for _, o := range options {
		o(&c.options)
	}
	return &Child[T, P]{c}
}

// addObject adds an object unless it is nil. An interface that holds a nil pointer is not nil, so the type is needed here.
func addObject[C any, P interface {
	*C
	client.Object
}](r *reconciliation, obj P) {
	if obj != nil {
		r.add(obj)
	}
}

// addObjects adds the objects of a list that are not nil.
func addObjects[C any, P interface {
	*C
	client.Object
}](r *reconciliation, objs []P) {
	for _, obj := range objs {
		addObject(r, obj)
	}
}

func (c *child) empty() client.Object { return c.sample.DeepCopyObject().(client.Object) }

// change calls f, unless a set has the child already.
func (c *Child[T, C]) change(method string, f func(*child)) *Child[T, C] {
	if c.inSet {
		c.mistake = fmt.Errorf("its method %s was called after Ensure: call it before", method)
	} else {
		f(c.child)
	}
	return c
}

// Kind sets the kind of a child without a Go type, whose function returns *unstructured.Unstructured. A manager's client reads
// unstructured objects past its cache, with one request each, unless its option Cache.Unstructured is set.
func (c *Child[T, C]) Kind(kind schema.GroupVersionKind) *Child[T, C] {
	return c.change("Kind", func(c *child) {
		if _, untyped := c.sample.(*unstructured.Unstructured); !untyped || c.configuration {
			c.mistake = fmt.Errorf("it has a Kind, and the type %T: a Kind is for a function that returns *unstructured.Unstructured; take it away", c.sample)
			return
		}
		c.sample.GetObjectKind().SetGroupVersionKind(kind)
	})
}

// After sets what the child comes after, and returns the child. Its objects are created, and changed for a new desired
// state, only while all objects of the others are ready: by kstatus, or by [ReadyWhen]. Until then the error of
// [ChildSet.Reconcile] says which object waits for which.
//
// An object that exists is repaired all the same: only changes of what is desired wait. Objects that fall out of the
// desired state are pruned in the reverse order: an object is deleted when the objects that came after it are gone.
// When the owner is deleted, the garbage collector ignores the order: see [ChildSet.RemoveInOrder].
//
// The others must be children of the same set. A cycle is an error of the set.
func (c *Child[T, C]) After(others ...AnyChild[T]) *Child[T, C] {
	return c.change("After", func(c *child) { c.after = append(c.after, untyped(others)...) })
}

// untyped returns children without their types. It keeps nil, which is a mistake that the set returns.
func untyped[T client.Object](children []AnyChild[T]) []*child {
	all := make([]*child, len(children))
	for i, c := range children {
		if c != nil {
			all[i] = c.engine()
		}
	}
	return all
}
