package set

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/cacheselection"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/internal/step"
)

// SetupWithBuilder watches the children and the objects that their inputs read: see [ownedresources.ChildSet.SetupWithBuilder].
func (s *Set) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := s.WatchChildren(mgr, b); err != nil {
		return err
	}
	owner := s.newOwner()
	forms, err := references.NewForms(mgr.GetScheme(), append(s.Watched(), owner), s.References())
	if err != nil {
		return err
	}
	s.Forms = forms
	if err := s.addPlanned(mgr, owner); err != nil {
		return err
	}
	return references.Watch(mgr, b, owner, s, s.References(), forms, s.Served)
}

// addPlanned adds the set to a manager that only plans, a [step.Planner]: it starts no reconciler, and collects what each would do (see
// package upgrade). With any other manager, addPlanned does nothing.
func (s *Set) addPlanned(mgr ctrl.Manager, owner client.Object) error {
	m, plans := mgr.(step.Planner)
	if !plans {
		return nil
	}
	gvk, err := kindOf(owner, mgr.GetScheme())
	if err != nil {
		return err
	}
	planned := step.Planned{Kind: gvk, Client: mgr.GetClient(), Steps: []step.PlannedStep{{Name: s.Name, Preview: s.Preview}}}
	if name := s.FinalizerName(); name != "" {
		planned.Finalizers = []string{name}
	}
	m.AddPlanned(planned)
	return nil
}

// References returns the references to the objects that the inputs read.
func (s *Set) References() (all []references.Reference) {
	var seen []*Input
	for _, child := range s.Children {
		if child == nil { // a nil child is a mistake, which Reconcile returns
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

// WatchChildren does the same as SetupWithBuilder, except that it does not watch the objects that the inputs read.
func (s *Set) WatchChildren(mgr ctrl.Manager, b *ctrl.Builder) error {
	if err := s.err(); err != nil {
		return err
	}
	s.APIReader = mgr.GetAPIReader()
	s.Cache = mgr.GetCache()
	s.Applier.Cache.Manager, _ = mgr.(cacheselection.Manager)
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
	watched := s.Watched()
	slices.SortStableFunc(watched, func(a, b client.Object) int { return isUntyped(a) - isUntyped(b) }) // typed objects first, since a kind that is watched as both is watched as typed
	for _, child := range watched {
		kind, err := s.Kind(child, mgr.GetScheme())
		if err != nil {
			return err
		}
		gvk := kind.gvk
		if seen[gvk] {
			continue
		}
		seen[gvk] = true
		switch ifServed, err := s.checkServed(gvk, mgr.GetScheme()); {
		case err != nil:
			return err
		case ifServed:
			w, err := kind.watchWhileServed(mgr, child)
			if err != nil {
				return err
			}
			b.WatchesRawSource(w)
			continue
		}
		if err := kind.indexIn(context.Background(), mgr, child); err != nil {
			return err
		}
		b.Owns(child, builder.WithPredicates(kind.Observe()))
		b.Watches(child, kind.enqueueBlocked())
		if marked, err := s.enqueueMarked(mgr, owner, gvk); err != nil {
			return err
		} else if marked != nil {
			b.Watches(child, marked)
		}
	}
	return nil
}

// ObserveOwners returns a handler of the events of owners. If an owner has an event, there may be something to do for it again. If it is
// deleted, the handler forgets it.
//
// On a resync, the handler enqueues the owner if nothing was to do for it before. Another watch, which has its own goroutine, may have
// enqueued the owner earlier. That reconcile may have been skipped, because nothing was to do yet.
func (s *Set) ObserveOwners() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]
	a := s.Applier
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { s.Owners.observe(e.Object.GetUID()) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			a.Versions.Observe(e.ObjectOld, e.ObjectNew)
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() { // the owner was deleted and created again while the watch was interrupted
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
