package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"

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

	"github.com/opblocks/opblocks/internal/compare"
)

// ChildSet applies the children of a T, prunes those that are not desired any more, and watches them. Use [Ensure] to make
// one, once and not in every pass. It is safe for concurrent use.
//
// A ChildSet implements Step and Watcher of package reconcile. It works in other reconcilers too: call its Reconcile in
// yours, and its SetupWithBuilder before the Complete of your builder. What a ChildSet remembers of an object is dropped
// with the event of its deletion.
//
// With a manager, a ChildSet emits events on the owner, with the reasons Created, Applied, Recreated and Deleted: at most
// one of each in a reconcile. The metric opblocks_applies_total counts what it did.
//
// If another writer changes a child back again and again, the first six writes are made at once. Later ones are delayed, by
// 2 seconds at first and by 5 minutes at most. While one is delayed the error is a [*WaitingError] with the reason
// WriteLoop. A warning event on the owner and the metric opblocks_write_loop name the fields.
type ChildSet[T client.Object] struct {
	name     string
	children []Child[T]
	applier  *applier
	cache    client.Reader // nil without a manager
	kinds    atomic.Pointer[childKinds]
}

// Ensure returns a [ChildSet] of these children. It sends no request; [ChildSet.Reconcile] does.
func Ensure[T client.Object](children ...Child[T]) *ChildSet[T] {
	return &ChildSet[T]{children: children, applier: newApplier()}
}

// SetName names the set. Call it before the first use. Package reconcile calls it with the name of the step. Two sets of
// one owner with children of the same kind need different names, or each would prune the children of the other.
func (s *ChildSet[T]) SetName(name string) { s.name = name }

// Reconcile creates and applies the children of obj, prunes those that it wrote before and that are not desired any more,
// and checks whether all are ready. It sends no request if nothing has changed. All children are tried, whatever happens
// to the others.
//
// The error joins the errors of all children. They are those of [Apply], those of the functions that build children, and
// [*FailedError]. If there is no such error but a child is not ready yet by the rules of kstatus, the error is a
// [*WaitingError]. Nothing is pruned if there is any other error than a [*WaitingError].
//
// In a pass of package reconcile the set prunes after all steps of the pass, if each of them succeeded or waits. So a child
// can move from one set to another.
func (s *ChildSet[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	o, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	o.set = s.name
	defer s.applier.emitEvents(&o)
	kinds, err := s.kindsIn(c.Scheme())
	if err != nil {
		return err
	}
	var failures []error
	children := make([]declared, 0, len(s.children))
	for i := range s.children {
		child, err := s.children[i].build(obj)
		if err != nil {
			failures = append(failures, err)
		} else if child != nil {
			children = append(children, declared{kinds[i], child, &s.children[i].options})
		}
	}
	if err := s.applier.validate(&o, children); err != nil {
		return errors.Join(append(failures, err)...)
	}
	var waits []*WaitingError
	for _, child := range children {
		err := s.applyAndCheck(ctx, &o, child)
		if err == nil {
			continue
		}
		if wait, ok := errors.AsType[*WaitingError](err); ok {
			waits = append(waits, wait)
		} else {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 { // a child that could not be built, or whose replacement failed, must not be pruned
		return errors.Join(failures...)
	}
	return errors.Join(joinWaits(waits), s.prune(ctx, &o, children))
}

// applyAndCheck applies one child. It returns nil if that is ready.
func (s *ChildSet[T]) applyAndCheck(ctx context.Context, o *owner, child declared) error {
	result, err := s.applier.apply(ctx, o, child)
	if err == nil {
		return child.kind.ready(result.Object)
	}
	if _, waits := errors.AsType[*WaitingError](err); !waits {
		s.applier.record(o, child.kind, child.object, outcomeFailed, "")
	}
	if _, ok := errors.AsType[*OwnershipError](err); ok {
		s.applier.owners.setBlocked(child.object, client.ObjectKeyFromObject(o.object))
	}
	return err
}

// childKinds are the kinds of a set's children under a scheme, in their order.
type childKinds struct {
	scheme *runtime.Scheme
	kinds  []*kind
}

func (s *ChildSet[T]) kindsIn(scheme *runtime.Scheme) ([]*kind, error) {
	if known := s.kinds.Load(); known != nil && known.scheme == scheme {
		return known.kinds, nil
	}
	found := &childKinds{scheme: scheme}
	for i := range s.children {
		k, err := s.applier.kinds.of(s.children[i].sample, scheme)
		if err != nil {
			return nil, err
		}
		found.kinds = append(found.kinds, k)
	}
	s.kinds.Store(found)
	return found.kinds, nil
}

// Watched returns an empty object for each child, of the child's kind. Package reconcile allows steps to read these kinds.
func (s *ChildSet[T]) Watched() []client.Object {
	var kinds []client.Object
	for i := range s.children {
		kinds = append(kinds, s.children[i].empty())
	}
	return kinds
}

// SetupWithBuilder watches the children, so that their events enqueue their owner. It also registers the metrics, and takes
// the manager's event recorder, API reader and cache. It returns an error if the manager's scheme does not have the type of
// a child. Package reconcile calls it.
func (s *ChildSet[T]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
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
	s.applier.kinds = &kinds{schemas: compare.FromServer(server.OpenAPIV3())}
	s.kinds.Store(nil)
	b.Watches(reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T), s.forgetOwners())
	seen := map[schema.GroupVersionKind]bool{}
	for _, child := range s.Watched() {
		gvk, err := apiutil.GVKForObject(child, mgr.GetScheme())
		if err != nil {
			return fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", child, err)
		}
		if seen[gvk] {
			continue
		}
		seen[gvk] = true
		if err := indexByController(context.Background(), mgr, child); err != nil {
			return err
		}
		b.Owns(child, builder.WithPredicates(s.observe()))
		b.Watches(child, s.enqueueBlocked())
	}
	return nil
}

// observe lets every event of a child through, and keeps what is remembered of children up to date.
func (s *ChildSet[T]) observe() predicate.Predicate {
	a := s.applier
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { a.writes.Observe(e.Object); return true },
		UpdateFunc: func(e event.UpdateEvent) bool { a.writes.Observe(e.ObjectNew); return true },
		DeleteFunc: func(e event.DeleteEvent) bool {
			a.writes.Observe(e.Object)
			a.children.forget(e.Object.GetUID())
			a.owners.childDeleted(e.Object)
			return true
		},
	}
}

// forgetOwners forgets owners that were deleted. It enqueues nothing.
func (s *ChildSet[T]) forgetOwners() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			s.applier.owners.forget(e.Object)
		},
	}
}

// enqueueBlocked enqueues the owner that waits for an object's name, when that object is deleted or gets another controller.
func (s *ChildSet[T]) enqueueBlocked() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	enqueue := func(child client.Object, q queue) {
		if owner, ok := s.applier.owners.takeBlocked(child); ok {
			q.Add(ctrl.Request{NamespacedName: owner})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !reflect.DeepEqual(metav1.GetControllerOfNoCopy(e.ObjectOld), metav1.GetControllerOfNoCopy(e.ObjectNew)) {
				enqueue(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// controllerIndex is the name of the index that finds an owner's children in the cache. It also finds those of some other
// owners, see controllerBucket.
const controllerIndex = "opblocks.dev/controller"

// indexByController adds the index, unless another set has added it: there is one per kind and manager.
func indexByController(ctx context.Context, mgr ctrl.Manager, child client.Object) error {
	err := mgr.GetFieldIndexer().IndexField(ctx, child, controllerIndex, func(obj client.Object) []string {
		if ref := metav1.GetControllerOfNoCopy(obj); ref != nil {
			return []string{controllerBucket(ref.UID)}
		}
		return nil
	})
	if err != nil && !strings.Contains(err.Error(), "indexer conflict") { // client-go has no type for it
		return fmt.Errorf("index of %T by controller: %w", child, err)
	}
	return nil
}

// controllerBucket returns one of 1,024 values for an owner. An index holds two maps for each of its values, which would
// take nearly a kilobyte for the children of each owner. It costs less to skip some dozens of other owners' children, once
// after a start.
func controllerBucket(owner types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner))
	return strconv.Itoa(int(h.Sum32() % 1024))
}
