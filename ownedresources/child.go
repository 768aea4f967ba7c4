package ownedresources

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"runtime"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Child is what a T owns of one kind: an object, or a list of objects. It is a pure function of the T and of declared
// inputs. Make one with [Build], [BuildOrError], [BuildEach], [BuildFrom], [BuildEachFrom], [BuildApply] or [BuildUnstructured], and
// apply it with [Ensure].
//
// A function that builds must return the same for the same owner and inputs. It must have no side effects, read no clock and
// no global, and copy nothing from the live object. It must not change the owner.
type Child[T client.Object] struct {
	build    func(*reconciliation[T]) error // adds what is desired
	function string                         // the name of the function that builds
	sample   client.Object                  // an empty object of the child's kind, in the type of its live objects
	inputs   []anyInput[T]                  // what build reads
	after    []*Child[T]
	options  childOptions

	configuration bool // it is built by apply configurations
}

// Build returns a child that f builds. f returns the desired object, or nil if there should be none. The namespace may be
// left empty; it is then the owner's.
//
// A set prunes only kinds that it builds. To prune the children of a kind that is no longer needed, keep a Build that
// returns nil for as long as such children may exist.
func Build[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) P, options ...ChildOption) *Child[T] {
	return newChild[T](P(new(C)), f, options, func(r *reconciliation[T]) error {
		addObject(r, f(r.object))
		return nil
	})
}

// BuildOrError is [Build] for a function that may fail. [ChildSet.Reconcile] returns its error. The other children of the
// set are applied nevertheless, but nothing is pruned.
func BuildOrError[T client.Object, C any, P interface {
	*C
	client.Object
}](f func(owner T) (P, error), options ...ChildOption) *Child[T] {
	return newChild[T](P(new(C)), f, options, func(r *reconciliation[T]) error {
		obj, err := f(r.object)
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
}](f func(owner T) ([]P, error), options ...ChildOption) *Child[T] {
	return newChild[T](P(new(C)), f, options, func(r *reconciliation[T]) error {
		objs, err := f(r.object)
		if err == nil {
			addObjects(r, objs)
		}
		return err
	})
}

// BuildFrom returns a child that f builds from the owner and an input. f is called with the value of the input, unless the
// input cannot be read: see [From] and [KeepWhileMissing]. f may return nil, as that of [Build].
func BuildFrom[T client.Object, S, C any, P interface {
	*C
	client.Object
}](input *Input[T, S], f func(owner T, value S) (P, error), options ...ChildOption) *Child[T] {
	child := newChild[T](P(new(C)), f, options, func(r *reconciliation[T]) error {
		value, err := input.value(r)
		if err != nil {
			return err
		}
		obj, err := f(r.object, value)
		if err == nil {
			addObject(r, obj)
		}
		return err
	})
	child.inputs = []anyInput[T]{input}
	return child
}

// BuildEachFrom is [BuildEach] with an input, as [BuildFrom] is [Build] with one.
func BuildEachFrom[T client.Object, S, C any, P interface {
	*C
	client.Object
}](input *Input[T, S], f func(owner T, value S) ([]P, error), options ...ChildOption) *Child[T] {
	child := newChild[T](P(new(C)), f, options, func(r *reconciliation[T]) error {
		value, err := input.value(r)
		if err != nil {
			return err
		}
		objs, err := f(r.object, value)
		if err == nil {
			addObjects(r, objs)
		}
		return err
	})
	child.inputs = []anyInput[T]{input}
	return child
}

// BuildUnstructured is [BuildOrError] for a kind without a Go type. It sets the kind of the object that f returns. A
// manager's client reads unstructured objects past its cache, with one request each, unless its option
// Cache.Unstructured is set.
func BuildUnstructured[T client.Object](kind schema.GroupVersionKind, f func(owner T) (*unstructured.Unstructured, error), options ...ChildOption) *Child[T] {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(kind)
	return newChild(sample, f, options, func(r *reconciliation[T]) error {
		obj, err := f(r.object)
		if err == nil && obj != nil {
			obj.SetGroupVersionKind(kind)
			r.add(obj)
		}
		return err
	})
}

// newChild returns a child that build builds. It calls f, which the user has given.
func newChild[T client.Object](sample client.Object, f any, options []ChildOption, build func(*reconciliation[T]) error) *Child[T] {
	child := &Child[T]{sample: sample, build: build, function: runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()}
	for _, o := range options {
		o(&child.options)
	}
	return child
}

// addObject adds an object unless it is nil. An interface that holds a nil pointer is not nil, so the type is needed here.
func addObject[T client.Object, C any, P interface {
	*C
	client.Object
}](r *reconciliation[T], obj P) {
	if obj != nil {
		r.add(obj)
	}
}

// addObjects adds the objects of a list that are not nil.
func addObjects[T client.Object, C any, P interface {
	*C
	client.Object
}](r *reconciliation[T], objs []P) {
	for _, obj := range objs {
		addObject(r, obj)
	}
}

func (c *Child[T]) empty() client.Object { return c.sample.DeepCopyObject().(client.Object) }

// After sets what the child comes after, and returns the child. Its objects are created, and changed for a new desired
// state, only while all objects of the others are ready: by kstatus, or by [ReadyWhen]. Until then the error of
// [ChildSet.Reconcile] says which object waits for which.
//
// An object that exists is repaired all the same: only changes of what is desired wait. Objects that fall out of the desired
// state are pruned in the reverse order, each after those that came after it are gone. The garbage collector ignores the order
// when the owner is deleted: see [ChildSet.RemoveInOrder].
//
// The others must be children of the same set. A cycle is an error of the set.
func (c *Child[T]) After(others ...*Child[T]) *Child[T] {
	c.after = append(c.after, others...)
	return c
}

// ChildOption changes how one child is built, applied or judged: [FormerManagers], [Adopt], [AdoptRetained], [Recreate], [CreateOnly],
// [KeepWhileMissing], [ReadyWhen], [IfServed], [Anywhere], [Retain], [Generate], [RunOnce] or [ExpandVolumes].
type ChildOption func(*childOptions)

type childOptions struct {
	formerManagers []string
	adopt          bool
	adoptRetained  bool
	recreate       bool
	createOnly     func(client.Object) // unsets the fields that are applied at creation only; nil for none
	createOnlyType reflect.Type        // the type that createOnly takes, nil without it

	keepWhileMissing     func(live, desired client.Object) // nil if the child is not built while an input is missing
	keepWhileMissingType reflect.Type
	readyCondition       string // the condition that decides readiness; empty for kstatus

	ifServed         bool
	servedConditions []string // the condition types that show whether the kind is served

	anywhere      bool                     // see Anywhere
	retain        func(client.Object) bool // reports whether the child stays when the owner is deleted; nil for never
	retainType    reflect.Type             // the type of owner that retain takes
	generate      []generatedKey
	runOnce       bool
	expandVolumes bool
}

// mistake returns what is wrong with the options of a child whose objects have this type and kind.
func (o *childOptions) mistake(childType reflect.Type, kind schema.GroupKind, ownerType reflect.Type) error {
	for option, optionType := range map[string]reflect.Type{"CreateOnly": o.createOnlyType, "KeepWhileMissing": o.keepWhileMissingType} {
		if optionType != nil && !childType.AssignableTo(optionType) {
			return fmt.Errorf("its %s is for %s: give that a function of %s", option, optionType, childType)
		}
	}
	if o.retain != nil && o.recreate {
		return errors.New("it has the options Retain and Recreate: Recreate would delete what Retain keeps; take one of them away")
	}
	if (o.runOnce || o.expandVolumes) && (o.anywhere || o.retain != nil) {
		return errors.New("it has the option RunOnce or ExpandVolumes, and Anywhere or Retain: they release and recreate the child by its owner reference; take one of them away")
	}
	return cmp.Or(o.generateMistake(kind, ownerType), o.runOnceMistake(kind), o.expandVolumesMistake(kind))
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
// earlier owner of the same name, the garbage collector deletes the object, or [Ensure] does after a minute. An object
// without owner reference, of a child with the option [Anywhere] or [Retain], is taken over if the API server shows that the
// owner that its annotations name is gone, and is of the same kind.
//
// Adopt is for migrations. It takes over whatever has the name, so a user who may only choose the owner's name makes the operator
// change, and later delete, an object of somebody else. [AdoptRetained] takes over only what [Retain] has left.
func Adopt() ChildOption {
	return func(o *childOptions) { o.adopt = true }
}

// AdoptRetained takes over an object that [Retain] has kept when its owner was deleted: one that has no controller, and whose
// annotations name this very object, this set ([AnnotationSet]), [AnnotationRetained], and an owner with the kind, the namespace and
// the name of the present one. Before that, the API server has to show that the former owner is gone. Any other object is left
// alone, with an [*OwnershipError].
//
// Whoever may write the object can also write such annotations. That gives nothing new: they could as well have changed or
// deleted what the operator keeps under this name.
func AdoptRetained() ChildOption {
	return func(o *childOptions) { o.adoptRetained = true }
}

// Recreate deletes the child and creates it again if the API server refuses a change, as it does for immutable fields. It is
// not needed where live fields of others contradict the desired ones: those are replaced without it. Everything that the
// child holds is lost. Before that, a dry run asks whether the new object would be accepted. If the API server refuses a change of
// the object that was created instead, the error is that refusal: a process deletes no object that it created for the same change.
// An object that another writer puts in its place is deleted again, less often each time: see [ChildSet]. Until the old child
// is gone, the error is a [*WaitingError].
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

// KeepWhileMissing applies the child although an object that its input reads is missing. The function copies from the live
// object what must not change meanwhile, such as the annotation by which pods are replaced, into the desired one. It is not
// called if there is no live object yet. P is the type of the child.
//
// Without this option, the child is neither built nor changed while an object is missing, and is not pruned either. In both
// cases the error of [ChildSet.Reconcile] is a [*WaitingError] with the reason ReferenceNotFound, which names what is missing.
//
// A child of apply configurations ([BuildApplyFrom]) gets both as *unstructured.Unstructured.
func KeepWhileMissing[P client.Object](keep func(live, desired P)) ChildOption {
	return func(o *childOptions) {
		o.keepWhileMissing = func(live, desired client.Object) { keep(live.(P), desired.(P)) }
		o.keepWhileMissingType = reflect.TypeFor[P]()
	}
}

// ReadyWhen sets the condition in the status of the child's objects that has to be True for them to be ready, such as
// "Available". A condition with an observedGeneration counts only for the generation that it observed. The default is the
// rules of kstatus.
func ReadyWhen(conditionType string) ChildOption {
	return func(o *childOptions) { o.readyCondition = conditionType }
}
