package ownedresources

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/references"
)

// SetupWithBuilder watches the children and what their inputs read, so that their events enqueue the owner. It also
// registers the metrics, and takes the manager's event recorder, API reader and cache. It returns an error if the
// manager's scheme does not have the type of a child, and for a mistake in the children. Package reconcile does the
// same.
func (s *set) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := s.watchChildren(mgr, b); err != nil {
		return err
	}
	owner := s.newOwner()
	forms, err := references.NewForms(mgr.GetScheme(), append(s.Watched(), owner), s.references())
	if err != nil {
		return err
	}
	s.forms = forms
	return references.Watch(mgr, b, owner, s, s.references(), forms, s.served)
}

// references returns what the inputs read.
func (s *set) references() (all []references.Reference) {
	var seen []*input
	for _, child := range s.children {
		if child == nil { // a mistake, which Reconcile returns
			continue
		}
		for _, in := range child.inputs {
			if !slices.Contains(seen, in) {
				seen, all = append(seen, in), append(all, in.references...)
			}
		}
	}
	return all
}

// watchChildren is SetupWithBuilder without what the inputs read.
func (s *set) watchChildren(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := s.err(); err != nil {
		return err
	}
	s.applier.apiReader = mgr.GetAPIReader()
	s.cache = mgr.GetCache()
	s.applier.recorder = mgr.GetEventRecorder("opblocks")
	if err := s.applier.metrics.register(ctrlmetrics.Registry); err != nil {
		return err
	}
	server, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("client for the API server's schemas: %w", err)
	}
	s.applier.kinds = &kinds{schemas: applyschema.FromServer(server.OpenAPIV3())}
	s.kinds.Store(nil)
	owner := s.newOwner()
	b.Watches(owner, s.observeOwners())
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
		b.Owns(child, builder.WithPredicates(s.observe()))
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

// observe lets every event of a child through, and keeps what is remembered of children and their owners up to date.
func (s *set) observe() predicate.Predicate {
	a := s.applier
	changed := func(child client.Object) {
		if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
			a.owners.observe(ref.UID)
		}
	}
	appeared := func(child client.Object) {
		if ours := a.writes.Observe(child); !ours {
			a.owners.childAppeared(child)
		}
		changed(child)
	}
	gone := func(child client.Object) {
		a.children.forget(child.GetUID())
		a.owners.childDeleted(child)
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
			a.versions.Observe(e.ObjectOld, e.ObjectNew)
			if ours := a.writes.Observe(e.ObjectNew); !ours && changesHands(e.ObjectOld, e.ObjectNew) {
				a.owners.childAppeared(e.ObjectNew)
			}
			changed(e.ObjectOld)
			changed(e.ObjectNew)
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			a.writes.Forget(e.Object, client.ObjectKeyFromObject(e.Object)) // after a broken watch, the event has an older version
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

// observeOwners forgets owners that were deleted. An owner that has an event is not settled any more.
//
// A resync enqueues an owner that was settled. Each watch has a goroutine of its own, so another watch may have
// enqueued the owner before, and its reconcile may have been left out, because no version had changed.
func (s *set) observeOwners() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	a := s.applier
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { a.owners.observe(e.Object.GetUID()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			a.versions.Observe(e.ObjectOld, e.ObjectNew)
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // the watch was interrupted while it was deleted and created again
				a.owners.forgetUID(e.ObjectOld.GetUID())
				a.loops.forget(e.ObjectOld.GetUID())
			}
			if a.owners.observe(e.ObjectNew.GetUID()) && e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e.ObjectNew)})
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			a.owners.forget(e.Object)
			a.loops.forget(e.Object.GetUID())
		},
	}
}

// enqueueBlocked enqueues the owners that wait for an object's name, when the object is deleted or gets another
// controller or mark.
func (s *set) enqueueBlocked(kind schema.GroupKind) handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	enqueue := func(child client.Object, q queue) {
		for _, owner := range s.applier.owners.takeBlocked(record.NameOf(kind, child)) {
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
