package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

// ChildSet keeps the children of a T as they are declared. It fits package reconcile's Step and
// Watcher, and works without it: call Reconcile in a reconciler of your own, and SetupWithBuilder
// when that is set up, since what the Set remembers of an object goes with the event of its
// deletion. It is safe for concurrent use; make it once with [Ensure], not in every pass.
//
// What it made and its functions do not give any more is deleted, also after a restart. Nothing
// is deleted while one of the functions gives an error.
//
// Where somebody else changes a child back again and again, the first five repairs come at once,
// then they become rarer, up to one in 5 minutes, with the error [WaitingError], a warning event
// on the owner and the metric opblocks_write_loop, which name the fields.
type ChildSet[T client.Object] struct {
	name     string
	children []Child[T]
	applier  *applier
	pruned   *pruned
	blocked  *blocked
	cache    client.Reader // nil without a manager
	known    atomic.Pointer[childKinds]
}

// Ensure gives the set of some children. All are tried in every pass, whatever happens to the
// others.
func Ensure[T client.Object](children ...Child[T]) *ChildSet[T] {
	return &ChildSet[T]{children: children, applier: newApplier(), pruned: newPruned(), blocked: newBlocked()}
}

// SetName names the set, before its first use; package reconcile gives it the step's name. Two
// sets of one owner that hold children of the same kind need names, or each would prune the
// other's.
func (s *ChildSet[T]) SetName(name string) { s.name = name }

// Reconcile makes the API server hold owner's children, with no request if it does, and deletes
// what is not wanted any more. Then it looks whether the children are ready, as kstatus defines it.
//
// The error joins those of all children; see [Apply] for what it may be, and [FailedError]. If
// nothing failed and some child is not ready yet, it is a [WaitingError].
//
// In a pass of package reconcile it deletes after all steps of the pass, so that a child may move
// from one set to another.
func (s *ChildSet[T]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	owner, err := newOwner(obj, c)
	if err != nil {
		return err
	}
	owner.set = s.name
	defer s.applier.report(&owner)
	known, err := s.kinds(c.Scheme())
	if err != nil {
		return err
	}
	var failures []error
	want := make([]desired, 0, len(s.children))
	for i := range s.children {
		child, err := s.children[i].build(obj)
		if err != nil {
			failures = append(failures, err)
		} else if child != nil {
			want = append(want, desired{known[i], child, &s.children[i].options})
		}
	}
	if err := s.applier.validate(&owner, want); err != nil {
		return errors.Join(append(failures, err)...)
	}
	var waits []*WaitingError
	for _, child := range want {
		err := s.keep(ctx, &owner, child)
		if err == nil {
			continue
		}
		if wait, ok := errors.AsType[*WaitingError](err); ok {
			waits = append(waits, wait)
		} else {
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 { // what could not be built, or replaced, must not be deleted
		return errors.Join(failures...)
	}
	return errors.Join(joinWaits(waits), s.prune(ctx, &owner, want))
}

// keep applies one child, and gives nil if it is ready.
func (s *ChildSet[T]) keep(ctx context.Context, owner *owner, child desired) error {
	result, err := s.applier.applyAs(ctx, owner, child.kind, child.object, child.options)
	if err == nil {
		return child.kind.ready(result.Object)
	}
	if _, waits := errors.AsType[*WaitingError](err); !waits {
		s.applier.tell(owner, child.kind, child.object, deedFailed, "")
	}
	if _, ok := errors.AsType[*OwnershipError](err); ok {
		s.blocked.set(child.object, client.ObjectKeyFromObject(owner.object))
	}
	return err
}

// childKinds are the kinds of a set's children under a scheme.
type childKinds struct {
	scheme *runtime.Scheme
	kinds  []*kind
}

func (s *ChildSet[T]) kinds(scheme *runtime.Scheme) ([]*kind, error) {
	if known := s.known.Load(); known != nil && known.scheme == scheme {
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
	s.known.Store(found)
	return found.kinds, nil
}

// Watched gives the kinds of the children.
func (s *ChildSet[T]) Watched() []client.Object {
	var kinds []client.Object
	for i := range s.children {
		kinds = append(kinds, s.children[i].empty())
	}
	return kinds
}

// SetupWithBuilder watches the children, so that their events bring their owner's next pass.
func (s *ChildSet[T]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	s.applier.live = mgr.GetAPIReader()
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
	s.known.Store(nil)
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
		b.Watches(child, s.blocked.handler())
	}
	return nil
}

// observe lets every event through, and keeps what we remember in step with the cache.
func (s *ChildSet[T]) observe() predicate.Predicate {
	a := s.applier
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { a.writes.Observe(e.Object); return true },
		UpdateFunc: func(e event.UpdateEvent) bool { a.writes.Observe(e.ObjectNew); return true },
		DeleteFunc: func(e event.DeleteEvent) bool {
			a.writes.Observe(e.Object)
			a.settled.forget(e.Object.GetUID())
			a.guard.forget(e.Object.GetUID())
			a.verified.forget(e.Object.GetUID())
			a.orphans.forget(e.Object.GetUID())
			s.pruned.forget(e.Object)
			return true
		},
	}
}

// forgetOwners drops what is remembered of an owner that is gone.
func (s *ChildSet[T]) forgetOwners() handler.EventHandler {
	return handler.Funcs{
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			s.pruned.forgetOwner(e.Object.GetUID())
			s.applier.recreated.forget(e.Object.GetUID())
		},
	}
}
