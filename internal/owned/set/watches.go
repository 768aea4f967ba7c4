package set

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/references"
)

// Watcher watches for a set.
type Watcher struct{ *Set }

// SetupWithBuilder watches the children and what their inputs read: see [ownedresources.ChildSet.SetupWithBuilder].
func (s Watcher) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := s.WatchChildren(mgr, b); err != nil {
		return err
	}
	owner := s.newOwner()
	forms, err := references.NewForms(mgr.GetScheme(), append(s.Watched(), owner), s.References())
	if err != nil {
		return err
	}
	s.Forms = forms
	return references.Watch(mgr, b, owner, s, s.References(), forms, s.Served)
}

// References returns what the inputs read.
func (s *Set) References() (all []references.Reference) {
	var seen []*Input
	for _, child := range s.Children {
		if child == nil { // a mistake, which Reconcile returns
			continue
		}
		for _, in := range child.Inputs {
			if !slices.Contains(seen, in) {
				seen, all = append(seen, in), append(all, in.references...)
			}
		}
	}
	return all
}

// WatchChildren is SetupWithBuilder without what the inputs read.
func (s Watcher) WatchChildren(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := s.err(); err != nil {
		return err
	}
	s.APIReader = mgr.GetAPIReader()
	s.Cache = mgr.GetCache()
	s.Applier.Recorder = mgr.GetEventRecorder("opblocks")
	if err := s.Applier.Metrics.Register(ctrlmetrics.Registry); err != nil {
		return err
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("client for the API server's schemas: %w", err)
	}
	s.Applier.Kinds = &owned.Kinds{Schemas: applyschema.FromServer(server.OpenAPIV3())}
	s.kinds.Store(nil)
	owner := s.newOwner()
	b.Watches(owner, s.ObserveOwners())
	if err := s.observeOrphaning(mgr, owner); err != nil {
		return err
	}
	seen := map[schema.GroupVersionKind]bool{}
	children := s.Watched()
	slices.SortStableFunc(children, func(a, b client.Object) int { return isUntyped(a) - isUntyped(b) }) // see references.Forms
	for _, child := range children {
		gvk, err := apiutil.GVKForObject(child, mgr.GetScheme())
		if err != nil {
			return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", child, err)
		}
		if seen[gvk] {
			continue
		}
		seen[gvk] = true
		switch ifServed, err := s.checkServed(gvk, mgr.GetScheme()); {
		case err != nil:
			return err
		case ifServed:
			w, err := s.watchWhileServed(mgr, child, gvk)
			if err != nil {
				return err
			}
			b.WatchesRawSource(w)
			continue
		}
		if err := indexByController(context.Background(), mgr, child); err != nil {
			return err
		}
		b.Owns(child, builder.WithPredicates(s.Observe()))
		b.Watches(child, s.enqueueBlocked(gvk.GroupKind()))
		if marked, err := s.enqueueMarked(mgr, owner, gvk); err != nil {
			return err
		} else if marked != nil {
			b.Watches(child, marked)
		}
	}
	return nil
}

func isUntyped(obj client.Object) int {
	if _, untyped := obj.(runtime.Unstructured); untyped {
		return 1
	}
	return 0
}

// Observe lets every event of a child through, and keeps what is remembered of children and their owners up to date.
func (s Watcher) Observe() predicate.Predicate {
	a := s.Applier
	changed := func(child client.Object) {
		if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
			s.Owners.observe(ref.UID)
		}
	}
	appeared := func(child client.Object) {
		if ours := a.Writes.Observe(child); !ours {
			s.Owners.childAppeared(child)
		}
		changed(child)
	}
	gone := func(child client.Object) {
		a.Children.Forget(child.GetUID())
		s.Owners.childDeleted(child)
		s.childGone(child)
		changed(child)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			appeared(e.Object)
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // the watch was interrupted while it was deleted and created again
				gone(e.ObjectOld)
				appeared(e.ObjectNew)
				return true
			}
			a.Versions.Observe(e.ObjectOld, e.ObjectNew)
			if ours := a.Writes.Observe(e.ObjectNew); !ours && changesHands(e.ObjectOld, e.ObjectNew) {
				s.Owners.childAppeared(e.ObjectNew)
			}
			changed(e.ObjectOld)
			changed(e.ObjectNew)
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			a.Writes.Forget(e.Object, client.ObjectKeyFromObject(e.Object)) // after a broken watch, the event has an older version
			gone(e.Object)
			return true
		},
	}
}

// changesHands reports whether an update may have given an object to another owner or set.
func changesHands(before, after client.Object) bool {
	was, is := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)
	if (was == nil) != (is == nil) || was != nil && was.UID != is.UID {
		return true
	}
	old, present := before.GetAnnotations(), after.GetAnnotations()
	for _, key := range [...]string{record.Set, record.Owner, record.Object, record.Retained} {
		if old[key] != present[key] {
			return true
		}
	}
	return (old[record.Applied] == "") != (present[record.Applied] == "")
}

// ObserveOwners forgets owners that were deleted. An owner that has an event is not settled any more.
//
// A resync enqueues an owner that was settled. Each watch has a goroutine of its own, so another watch may have
// enqueued the owner before, and its reconcile may have been left out, because no version had changed.
func (s Watcher) ObserveOwners() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	a := s.Applier
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { s.Owners.observe(e.Object.GetUID()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			a.Versions.Observe(e.ObjectOld, e.ObjectNew)
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // the watch was interrupted while it was deleted and created again
				s.Owners.forgetUID(e.ObjectOld.GetUID())
				a.ForgetOwner(e.ObjectOld.GetUID())
			}
			if s.Owners.observe(e.ObjectNew.GetUID()) && e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			s.Owners.forget(e.Object)
			a.ForgetOwner(e.Object.GetUID())
		},
	}
}

// enqueueBlocked enqueues the owners that wait for an object's name, when the object is deleted or gets another
// controller or mark.
func (s Watcher) enqueueBlocked(kind schema.GroupKind) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	enqueue := func(child client.Object, q queue) {
		for _, owner := range s.Owners.takeBlocked(record.NameOf(kind, child)) {
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

// controllerIndex is the name of the index that finds an owner's children in the cache, by their controller or by their
// marks. It also finds the children of some other owners, see controllerBucket.
const controllerIndex = "opblocks.dev/controller"

// indexByController adds the index, unless another set has added it: there is one per kind and manager.
func indexByController(ctx context.Context, mgr ctrl.Manager, child client.Object) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, child, controllerIndex, controllerValue)
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") { // client-go has no type for it
		return fmt.Errorf("index of %T by controller: %w", child, err)
	}
	return nil
}

// controllerValue returns the values of the index for an object.
func controllerValue(obj client.Object) []string {
	if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
		return []string{controllerBucket(ref.UID)}
	}
	if m, marked := record.ParseOwner(obj.GetAnnotations()[record.Owner]); marked {
		return []string{controllerBucket(m.UID), nameBucket(m.Owner)}
	}
	return nil
}

// nameBucket returns the bucket of an owner's name, which holds the children whose mark has this name.
func nameBucket(owner record.Name) string { return controllerBucket(types.UID(owner.String())) }

// controllerBuckets is the number of values of the index in a namespace.
const controllerBuckets = 4096

// controllerBucket returns one of [controllerBuckets] values for an owner. An index holds two maps for each of its
// values, which would take nearly a kilobyte for the children of each owner. It costs less to skip other owners'
// children, once after a start. In a namespace with 100,000 owners, some two dozen share a bucket.
func controllerBucket(owner types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner))
	return strconv.Itoa(int(h.Sum32() % controllerBuckets))
}

// childGone notes that a child of this set is gone. It ignores objects of others.
func (s Watcher) childGone(child client.Object) {
	known := s.kinds.Load()
	if known == nil || !s.carriesRecords(child) {
		return
	}
	for _, k := range known.kinds {
		u, untyped := child.(*unstructured.Unstructured)
		if k.Type != reflect.TypeOf(child).Elem() || untyped && u.GroupVersionKind() != k.GVK {
			continue
		}
		name := record.NameOf(k.GVK.GroupKind(), child)
		if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
			s.Applier.Loops.ChildGone(ref.UID, name, child.GetUID(), s.Applier.Clock.Now())
		} else if m, marked := record.MarkOf(child, name.Kind); marked {
			s.Applier.Loops.ChildGone(m.UID, name, child.GetUID(), s.Applier.Clock.Now())
		}
		return
	}
}
