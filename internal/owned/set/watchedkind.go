package set

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/record"
)

// WatchedKind watches the children of one kind for a set.
type WatchedKind struct {
	set   *Set
	gvk   schema.GroupVersionKind
	owner schema.GroupKind // the kind of the owners
	place int32            // the index of the first child of the kind

	sample client.Object // an empty object, typed or unstructured like the watched objects
}

// Kind returns the [WatchedKind] for the kind of an object. If the set has no child of this kind, or the scheme lacks the type, it returns
// an error.
func (s *Set) Kind(child client.Object, scheme *runtime.Scheme) (WatchedKind, error) {
	owner, err := kindOf(s.newOwner(), scheme)
	if err != nil {
		return WatchedKind{}, err
	}
	gvk, err := kindOf(child, scheme)
	if err != nil {
		return WatchedKind{}, err
	}
	for i, other := range s.Children {
		if kind, err := kindOf(other.Sample, scheme); err != nil || kind == gvk {
			return WatchedKind{s, gvk, owner.GroupKind(), int32(i), child}, err
		}
	}
	return WatchedKind{}, fmt.Errorf("set %s has no child of kind %s", s.Name, gvk.Kind)
}

func kindOf(obj client.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return gvk, fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", obj, err)
	}
	return gvk, nil
}

// indexIn registers Index with the cache. If two reconcilers share the set, they have one index.
func (k WatchedKind) indexIn(ctx context.Context, mgr ctrl.Manager, child client.Object) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, child, k.field(), k.Index)
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") { // client-go has no type for it
		return fmt.Errorf("index of %T by owner: %w", child, err)
	}
	return nil
}

// field returns the name of the index in the cache. It contains the pointer, because another set needs its own index.
func (k WatchedKind) field() string { return fmt.Sprintf("opblocks.dev/%p-children", k.set) }

// Index adds the name of an object to the set's index of children, if the set has written the object. The cache calls it for each
// version of an object, also for the version before an update and for a deleted object. Index returns no keys, so the cache's own index
// stays empty.
func (k WatchedKind) Index(obj client.Object) []string {
	if owner, mark, ok := k.writtenFor(obj); ok {
		k.set.childIndex.Add(owner, childindex.Name{Kind: k.place, NamespacedName: client.ObjectKeyFromObject(obj)}, mark)
	}
	return nil
}

// remove removes the name of an object from the index of children, because the object is gone or has another owner. If the cache again
// shows an object of that name and owner, the name stays.
func (k WatchedKind) remove(obj client.Object) {
	owner, mark, ok := k.writtenFor(obj)
	if !ok || k.set.Cache == nil {
		return
	}
	if w := k.set.Served[k.gvk]; w != nil { // a read of a kind that is not served would start an informer and block
		if !w.Acquire() {
			return
		}
		defer w.Release()
	}
	name := childindex.Name{Kind: k.place, NamespacedName: client.ObjectKeyFromObject(obj)}
	for range removals {
		live := k.sample.DeepCopyObject().(client.Object)
		found, gone, err := k.set.readIndexed(context.Background(), k.gvk.GroupKind(), owner, name, mark, live)
		if found || gone || err != nil { // if the read fails, the name stays
			return
		}
	}
}

// removals is the number of attempts to remove a name. An attempt fails only if another child of the owner appears at that moment.
const removals = 100

// writtenFor does the same as [Set.writtenFor], but ok is also false if the owner has another kind: a set for owners of that kind may have
// the same name.
func (k WatchedKind) writtenFor(obj client.Object) (owner types.UID, mark *record.Mark, ok bool) {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil && ref.Kind != k.owner.Kind {
		return "", nil, false
	}
	owner, mark, ok = k.set.writtenFor(k.gvk.GroupKind(), obj)
	return owner, mark, ok && (mark == nil || mark.Owner.Kind == k.owner)
}

// Observe returns a predicate that lets every event pass. With each event, it updates what is remembered of the child and its owner.
func (k WatchedKind) Observe() predicate.Predicate {
	a := k.set.Applier
	changed := func(child client.Object) {
		if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
			k.set.Owners.observe(ref.UID)
		}
	}
	appeared := func(child client.Object) {
		a.Writes.Observe(child)
		changed(child)
	}
	gone := func(child client.Object) {
		a.Children.Forget(child.GetUID())
		k.remove(child)
		if owner, _, ok := k.writtenFor(child); ok {
			a.Loops.ChildGone(owner, record.NameOf(k.gvk.GroupKind(), child), child.GetUID(), a.Clock.Now())
		}
		changed(child)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			appeared(e.Object)
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // the object was deleted and created again while the watch was interrupted
				gone(e.ObjectOld)
				appeared(e.ObjectNew)
				return true
			}
			a.Versions.Observe(e.ObjectOld, e.ObjectNew)
			a.Writes.Observe(e.ObjectNew)
			if changesHands(e.ObjectOld, e.ObjectNew) {
				k.remove(e.ObjectOld)
			}
			changed(e.ObjectOld)
			changed(e.ObjectNew)
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			a.Writes.Forget(e.Object, client.ObjectKeyFromObject(e.Object)) // after an interruption of the watch, the event may have an older version
			gone(e.Object)
			return true
		},
	}
}

// changesHands reports whether an update may have given an object to another owner or another set.
func changesHands(before, after client.Object) bool {
	was, is := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)
	if (was == nil) != (is == nil) || was != nil && was.UID != is.UID {
		return true
	}
	old, present := before.GetAnnotations(), after.GetAnnotations()
	return old[record.Set] != present[record.Set] || old[record.Owner] != present[record.Owner] || old[record.Object] != present[record.Object] ||
		(old[record.Applied] == "") != (present[record.Applied] == "")
}

// enqueueBlocked returns a handler. It enqueues the owners that wait for an object's name when the object is deleted or gets another owner.
func (k WatchedKind) enqueueBlocked() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	enqueue := func(child client.Object, q queue) {
		for _, owner := range k.set.Owners.takeBlocked(record.NameOf(k.gvk.GroupKind(), child)) {
			q.Add(ctrl.Request{NamespacedName: owner})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !reflect.DeepEqual(metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew)) ||
				e.ObjectOld.GetAnnotations()[record.Owner] != e.ObjectNew.GetAnnotations()[record.Owner] {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}
