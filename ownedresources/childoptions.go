package ownedresources

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChildOption changes how one child is built, applied or judged: [FormerManagers], [Adopt], [AdoptRetained], [Recreate],
// [ReadyWhen], [IfServed], [Anywhere], [RunOnce] or [ExpandVolumes]. What depends on the type of the owner or of the child is a
// method of [Child] instead, so that the compiler checks it.
type ChildOption func(*childOptions)

type childOptions struct {
	formerManagers []string
	adopt          bool
	adoptRetained  bool
	recreate       bool
	createOnly     func(client.Object) // unsets the fields that are applied at creation only; nil for none

	keepWhileMissing func(live, desired client.Object) // nil if the child is not built while an input is missing
	readyCondition   string                            // the condition that decides readiness; empty for kstatus

	ifServed         bool
	servedConditions []string // the condition types that show whether the kind is served

	anywhere      bool                     // see Anywhere
	retain        func(client.Object) bool // reports whether the child stays when the owner is deleted; nil for never
	generate      []generatedKey
	runOnce       bool
	expandVolumes bool
}

// mistake returns what is wrong with the options of a child whose objects have this kind, and that has an input or not.
func (o *childOptions) mistake(kind schema.GroupKind, hasInput bool) error {
	if o.keepWhileMissing != nil && !hasInput {
		return errors.New("it has KeepWhileMissing, and no input that could be missing: take it away, or build it with BuildFrom")
	}
	if o.retain != nil && o.recreate {
		return errors.New("it has the options Retain and Recreate: Recreate would delete what Retain keeps; take one of them away")
	}
	if (o.runOnce || o.expandVolumes) && (o.anywhere || o.retain != nil) {
		return errors.New("it has the option RunOnce or ExpandVolumes, and Anywhere or Retain: they release and recreate the child by its owner reference; take one of them away")
	}
	return cmp.Or(o.generateMistake(kind), o.runOnceMistake(kind), o.expandVolumesMistake(kind))
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

// Adopt takes over an object of the child's name that has no controller. Without it such an object is left alone, with
// an [*OwnershipError]. An object that has another controller is left alone, with one exception: if that controller is
// a former owner (a deleted owner of the same name), the garbage collector deletes the object, or [Ensure] does after a
// minute. An object that has a mark instead of an owner reference ([Anywhere], [Child.Retain]) is taken over if the mark
// names an owner of the same kind, and the API server shows that this owner is gone.
//
// Adopt is for migrations. It takes over whatever has the name, so a user who may only choose the owner's name can make
// the operator change, and later delete, an object of somebody else. [AdoptRetained] takes over only what [Child.Retain] has
// left.
func Adopt() ChildOption {
	return func(o *childOptions) { o.adopt = true }
}

// AdoptRetained takes over an object that [Child.Retain] has kept when a former owner was deleted. The object has no
// controller and is retained (opblocks.dev/retained). Its annotations name the object itself, this set
// (opblocks.dev/set), and an owner with the kind, the namespace and the name of the present one. Before it takes over
// the object, the API server has to show that this former owner is gone. Any other object is left alone, with an
// [*OwnershipError].
//
// Whoever may write the object can also write such annotations. They gain nothing by it: they can already change or
// delete what the operator keeps under this name.
func AdoptRetained() ChildOption {
	return func(o *childOptions) { o.adoptRetained = true }
}

// Recreate deletes the child and creates it again if the API server refuses a change, as it does for immutable fields.
// It is not needed where live fields of others contradict the desired ones: those are replaced without it. Everything
// that the child holds is lost. Before that, a dry run asks whether the new object would be accepted. If the API server
// also refuses the change for the new object, the error is that refusal: a process does not delete an object that it
// created for the same change. An object that another writer puts in its place is deleted again, less often each time:
// see [ChildSet]. Until the old child is gone, the error is a [*WaitingError].
func Recreate() ChildOption {
	return func(o *childOptions) { o.recreate = true }
}

// CreateOnly applies some fields only when the child is created, and returns the child. Afterwards they are not compared, and
// keep their values. The function unsets these fields in the object that it is given. They may be anywhere but inside a list.
// A child of [BuildApply] gets its object as *unstructured.Unstructured.
func (c *Child[T, C]) CreateOnly(unset func(C)) *Child[T, C] {
	return c.change("CreateOnly", func(c *child) { c.options.createOnly = func(obj client.Object) { unset(obj.(C)) } })
}

// KeepWhileMissing applies the child although an object that its input reads is missing, and returns the child. The function
// copies from the live object into the desired one what must not change while the input is incomplete, such as the annotation
// by which pods are replaced. It is not called before the child exists.
//
// Without it, the child is neither built nor changed while an object is missing, and is not pruned either. In both cases the
// error of [ChildSet.Reconcile] is a [*WaitingError] with the reason ReferenceNotFound, which names what is missing.
func (c *Child[T, C]) KeepWhileMissing(keep func(live, desired C)) *Child[T, C] {
	return c.change("KeepWhileMissing", func(c *child) {
		c.options.keepWhileMissing = func(live, desired client.Object) { keep(live.(C), desired.(C)) }
	})
}

// ReadyWhen sets the condition in the status of the child's objects that has to be True for them to be ready, such as
// "Available". A condition with an observedGeneration counts only for the generation that it observed. The default is the
// rules of kstatus.
func ReadyWhen(conditionType string) ChildOption {
	return func(o *childOptions) { o.readyCondition = conditionType }
}
