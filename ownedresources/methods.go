package ownedresources

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/set"
)

// Generate fills a key of a Secret with a random value of this length, between 1 and 1,024 characters, if the key is missing or empty. It
// returns the child. Without rotateOn it never changes an existing value, whoever has set it. A value consists of letters and digits, so
// it needs no quotes in a URL or a shell; each character has 5.95 bits of entropy. Call it once for each key.
//
// The function that builds the Secret leaves the key out, or leaves its value empty. If it sets a value, that value is applied as any
// other, and nothing is generated. If it later stops setting the value, the value stays.
//
// If a key or the whole Secret is deleted, or a value is emptied, a new value is generated: whoever used the old value has to use the new
// one. A Secret cannot have [Child.Recreate] too, because a recreated Secret would lose its values.
//
// The value is never written to an annotation, an event, a condition or a log.
//
//	ownedresources.Build(credentials).Generate("password", 32)
//
// rotateOn is at most one function. It returns a trigger, such as the value of an annotation that a person sets. Whenever the trigger
// changes, the value is replaced once. A trigger that becomes empty replaces nothing. If the value exists already when rotateOn is added,
// it is kept until the trigger changes for the first time.
//
//	ownedresources.Build(credentials).Generate("password", 32, func(app *App) string {
//		return app.Annotations["example.com/rotate-password"]
//	})
func (c *Child[T, C]) Generate(key string, length int, rotateOn ...func(owner T) string) *Child[T, C] {
	return c.change("Generate", func(c *set.Child) {
		generated := owned.GeneratedKey{Name: key, Length: length}
		if len(rotateOn) > 0 {
			generated.RotateOn = func(owner client.Object) string { return rotateOn[0](owner.(T)) }
		}
		if len(rotateOn) > 1 {
			c.Mistake = fmt.Errorf("Generate(%q) has %d functions that return a trigger: give it one", key, len(rotateOn))
		}
		c.Options.Generate = append(c.Options.Generate, generated)
	})
}

// Retain keeps the child's objects when the owner is deleted, as long as the function returns true for the owner. Such objects are not
// pruned either. It returns the child.
//
// While the function returns true, the objects have no owner reference. Instead they are marked as children by the label
// opblocks.dev/owner-uid and by annotations, among them opblocks.dev/retained. So the deletion of the owner does not remove them, whether
// it uses background, foreground or orphan propagation, and also if the operator is down. When the function returns false, they get the
// owner reference, and are deleted with the owner. The reference is removed and added with the resource version as precondition.
//
// Set the field from which the function decides before you delete the owner, and wait until a reconcile has seen it:
// under foreground deletion the garbage collector deletes what has an owner reference at once. Under background
// deletion, [ChildSet.Finalize] still follows a change that came right before the deletion: the owner has a finalizer
// (see [ChildSet.FinalizerName]).
//
// An object that is not desired any more stays until the function returns false. If a set has several children of one kind,
// opblocks.dev/builder shows which function built the object. If a release adds, removes, renames or reorders the functions that build
// this kind, it is unknown which function built an object that was not desired before the release. Such an object stays until the
// functions of all children of its kind return false. Functions without a name are identified by their position: give the children of such
// a kind functions with names, or do not reorder them.
//
// If the namespace is deleted, the objects are deleted too.
//
// When the owner is deleted, an event with the reason Retained and a log entry name the objects that stay. A new owner of the same name
// does not take it over: the error is an [*OwnershipError] whose Retained is true. With the option [Child.AdoptRetained] the new owner
// takes it over, as soon as the API server shows that the former owner is gone.
func (c *Child[T, C]) Retain(keep func(owner T) bool) *Child[T, C] {
	return c.change("Retain", func(c *set.Child) { c.Options.Retain = func(owner client.Object) bool { return keep(owner.(T)) } })
}

// change calls f, which changes the child. method is the name of the method of Child that calls it: see
// [set.Child.Change].
func (c *Child[T, C]) change(method string, f func(*set.Child)) *Child[T, C] {
	c.child.Change(method, f)
	return c
}

// Kind sets the kind of a child without a Go type, whose function returns *unstructured.Unstructured. The client of a manager reads each
// unstructured object by a request to the API server, unless the manager's option Client.Cache.Unstructured is set.
func (c *Child[T, C]) Kind(kind schema.GroupVersionKind) *Child[T, C] {
	return c.change("Kind", func(c *set.Child) {
		if _, untyped := c.Sample.(*unstructured.Unstructured); !untyped || c.Configuration {
			c.Mistake = fmt.Errorf("it has a Kind, and the type %T: a Kind is for a function that returns *unstructured.Unstructured; take it away", c.Sample)
			return
		}
		c.Sample.GetObjectKind().SetGroupVersionKind(kind)
	})
}

// After sets the order: this child comes after the others. It returns the child. The child's objects are created, and changed for a new
// desired state, only while all objects of the others are ready: by kstatus, or by [Child.ReadyWhen]. Until then the error of
// [ChildSet.Reconcile] says which object waits for which.
//
// If somebody changes an existing object, that is repaired in any case: only changes of the desired state wait. Objects that are not
// desired any more are pruned in the reverse order: an object is deleted once the objects that came after it are gone. When the owner is
// deleted, the garbage collector ignores the order: see [ChildSet.RemoveInOrder].
//
// The others must be children of the same set. A cycle is an error of the set.
func (c *Child[T, C]) After(others ...AnyChild[T]) *Child[T, C] {
	return c.change("After", func(c *set.Child) { c.After = append(c.After, untyped(others)...) })
}

// CreateOnly applies some fields only when the child is created, and returns the child. Afterwards they are not compared, and keep their
// values. unset removes these fields from the object that it gets. The fields must not be inside a list. A child of [BuildApply] gets
// its object as *unstructured.Unstructured.
func (c *Child[T, C]) CreateOnly(unset func(C)) *Child[T, C] {
	return c.change("CreateOnly", func(c *set.Child) { c.Options.CreateOnly = func(obj client.Object) { unset(obj.(C)) } })
}

// KeepWhileMissing applies the child also while an object that its input reads is missing. It returns the child. The function keep copies
// from the live object into the desired object what must not change while the input is incomplete, such as an annotation whose change would
// replace the pods. It is called only if the child exists.
//
// [Child.KeepAnnotationsWhileMissing] does that for annotations.
//
// Without this option, the child is neither built nor changed while an object is missing, and is not pruned either. In both cases the
// error of [ChildSet.Reconcile] is a [*WaitingError] with the reason ReferenceNotFound, which names what is missing.
func (c *Child[T, C]) KeepWhileMissing(keep func(live, desired C)) *Child[T, C] {
	return c.change("KeepWhileMissing", func(c *set.Child) {
		c.Options.KeepWhileMissing = func(live, desired client.Object) { keep(live.(C), desired.(C)) }
	})
}

// KeepAnnotationsWhileMissing is [Child.KeepWhileMissing] for annotations of the object, and of its pod template if it has one, such as the
// hash of an input. So the pods are not replaced if an object that they use is missing for a while. If the live object does not have an
// annotation, the desired annotation stays.
func (c *Child[T, C]) KeepAnnotationsWhileMissing(keys ...string) *Child[T, C] {
	return c.change("KeepAnnotationsWhileMissing", func(c *set.Child) {
		former := c.Options.KeepWhileMissing
		c.Options.KeepWhileMissing = func(live, desired client.Object) {
			if former != nil {
				former(live, desired)
			}
			keepAnnotations(live, desired, keys)
		}
	})
}
