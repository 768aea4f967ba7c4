package set

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/servedkinds"
)

// The reasons in conditions and errors about kinds that the API server may not serve.
const (
	ReasonKindServed     = "KindServed"
	ReasonKindNotServed  = "KindNotServed"
	reasonKindNotWatched = "KindNotWatched"
	reasonNotReady       = "NotReady"
	reasonSchemaMissing  = "SchemaNotServed"
)

// schemaRetry is the delay before the next attempt to read a schema. The API server publishes the schema shortly after it serves the kind.
const schemaRetry = time.Second

// ConditionTypes returns the types of the conditions that [ownedresources.Child.IfServed] sets.
func (s *Set) ConditionTypes() (types []string) {
	for _, child := range s.Children {
		if child != nil { // a nil child is a mistake, which Reconcile returns
			types = append(types, child.Options.ServedConditions...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// checkServed reports whether the children of a kind have the option IfServed. If only some have it, it returns an error.
func (s *Set) checkServed(gvk schema.GroupVersionKind, scheme *runtime.Scheme) (ifServed bool, err error) {
	var all []bool
	for _, child := range s.Children {
		if kind, err := apiutil.GVKForObject(child.Sample, scheme); err == nil && kind == gvk {
			all = append(all, child.Options.IfServed)
		}
	}
	if slices.Contains(all, true) && slices.Contains(all, false) {
		return false, fmt.Errorf("children of kind %s: some have the option IfServed and some have not: give it to all", gvk.Kind)
	}
	return slices.Contains(all, true), nil
}

// watchWhileServed returns the watch of a kind with the option IfServed. It watches the kind only while the API server serves it.
func (k WatchedKind) watchWhileServed(mgr ctrl.Manager, child client.Object) (*servedkinds.Watch, error) {
	kinds, err := servedkinds.ForManager(mgr)
	if err != nil {
		return nil, err
	}
	owner := k.set.newOwner()
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), owner, handler.OnlyControllerOwner())
	handlers := []servedkinds.Handler{
		{Handler: owned, Predicates: []predicate.Predicate{k.Observe()}},
		{Handler: k.enqueueBlocked()},
	}
	if marked, err := k.set.enqueueMarked(mgr, owner, k.gvk); err != nil {
		return nil, err
	} else if marked != nil {
		handlers = append(handlers, servedkinds.Handler{Handler: marked})
	}
	w, err := kinds.Watch(child, servedkinds.Options{
		Indexes:  map[string]client.IndexerFunc{k.field(): k.Index},
		Handlers: handlers,
		Requests: func(ctx context.Context) ([]ctrl.Request, error) { return k.set.allOwners(ctx, mgr) },
		Appeared: func() { k.forgetFormerKind(mgr.GetScheme()) },
		Gone:     func(ctx context.Context) { k.forgetChildren(ctx, child, mgr.GetScheme()) },
	})
	if err != nil {
		return nil, err
	}
	if k.set.Served == nil {
		k.set.Served = gates{}
	}
	k.set.Served[k.gvk] = w
	return w, nil
}

// allOwners returns a request for each owner in the cache.
func (s *Set) allOwners(ctx context.Context, mgr ctrl.Manager) (requests []ctrl.Request, err error) {
	gvk, err := apiutil.GVKForObject(s.newOwner(), mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	obj, err := mgr.GetScheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	list, ok := obj.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is no list of objects", obj)
	}
	if err := mgr.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for _, owner := range ItemsOf(list) {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(owner)})
	}
	return requests, nil
}

// forgetFormerKind is called when the API server serves a kind again. It drops the schema of the kind, and the remembered writes of its
// objects: the objects were deleted together with the former CustomResourceDefinition, perhaps before the cache had shown them.
func (k WatchedKind) forgetFormerKind(scheme *runtime.Scheme) {
	k.set.Applier.Kinds.Forget(k.gvk)
	k.set.Applier.Writes.ForgetIf(func(obj client.Object) bool {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		return err == nil && gvk == k.gvk
	})
}

// forgetChildren drops what is remembered of the children of a kind that the API server does not serve any more. It does not wait for the
// events of their deletion, because the cache may never deliver them.
func (k WatchedKind) forgetChildren(ctx context.Context, sample client.Object, scheme *runtime.Scheme) {
	k.set.childIndex.RemoveKind(k.place)
	list := NewList(sample, k.gvk, scheme)
	if err := k.set.Cache.List(ctx, list, client.UnsafeDisableDeepCopy, hashedvalues.AsHashed); err != nil {
		log.FromContext(ctx).V(1).Info("Cannot list the children of a kind that is gone", "kind", k.gvk.String(), "reason", err.Error())
	}
	for _, child := range ItemsOf(list) {
		k.set.Applier.Children.Forget(child.GetUID())
	}
}

// acquireServed finds out which children are left out because their kinds are not served. The other kinds may be read until the returned
// function is called.
func (r *Reconciliation) acquireServed() (release func()) {
	r.Kinds = slices.Clone(r.Kinds)
	for i, child := range r.Set.Children {
		state := &r.States[i]
		var err error
		if state.Served, err = r.Set.Served.acquire(child, r.Kinds[i].GVK, r.client); err != nil {
			r.fail(i, child.Describe(), err) // the kind may be served, so later children wait for this one
		}
		if state.Served != ServedNow {
			continue
		}
		// The schema is looked up only now, because the API server has no schema for a kind that it does not serve.
		compiled, err := r.Set.compile(child, r.client.Scheme())
		if err != nil {
			state.unusable = owned.NewWaiting(reasonSchemaMissing, schemaRetry, fmt.Sprintf(
				"%s: its kind is served, but its schema is not yet: %v", child.Describe(), err))
			continue
		}
		r.Kinds[i] = compiled
	}
	return func() {
		for i := range r.States {
			r.Set.Served.release(r.States[i].Served, r.Kinds[i].GVK)
		}
	}
}

// servedAs reports whether the kinds of the children are served as they were in then. The caller must call release after its reads.
func (s *Set) servedAs(c client.Client, then []servedState) (release func(), same bool) {
	kinds, err := s.KindsIn(c.Scheme())
	if err != nil {
		return func() {}, false
	}
	now := make([]servedState, len(kinds))
	same = true
	for i, child := range s.Children {
		state, err := s.Served.acquire(child, kinds[i].GVK, c)
		now[i], same = state, same && err == nil && state == then[i]
	}
	return func() {
		for i, k := range kinds {
			s.Served.release(now[i], k.GVK)
		}
	}, same
}

// noteServed sets the conditions of the children that have the option IfServed.
func (r *Reconciliation) noteServed() {
	pass := passcontext.FromContext(r.ctx)
	if pass == nil {
		return
	}
	for _, conditionType := range r.Set.ConditionTypes() {
		pass.SetCondition(r.ServedCondition(conditionType))
	}
}

// ServedCondition returns the condition of this type. It is about the children that name the type in [ownedresources.Child.IfServed].
// Children that are left out come first in the message and decide the reason.
func (r *Reconciliation) ServedCondition(conditionType string) metav1.Condition {
	messages := map[string][]string{}
	for i, child := range r.Set.Children {
		if !slices.Contains(child.Options.ServedConditions, conditionType) {
			continue
		}
		gvk, state := r.Kinds[i].GVK, &r.States[i]
		reason, message := ReasonKindServed, ""
		switch {
		case state.Served == NotServed:
			reason, message = ReasonKindNotServed, fmt.Sprintf("%s of %s is not served by the API server, so it is left out", gvk.Kind, gvk.GroupVersion())
		case state.Served == NotWatched:
			reason, message = reasonKindNotWatched, fmt.Sprintf("%s of %s is left out until its watch has started, for which the operator needs get, list and watch", gvk.Kind, gvk.GroupVersion())
		case state.NotReady != "":
			reason, message = reasonNotReady, state.NotReady+" is not ready"
		}
		if !slices.Contains(messages[reason], message) {
			messages[reason] = append(messages[reason], message)
		}
	}
	condition := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse}
	var all []string
	for _, reason := range []string{ReasonKindNotServed, reasonKindNotWatched, reasonNotReady} {
		if len(messages[reason]) > 0 && condition.Reason == "" {
			condition.Reason = reason
		}
		all = append(all, messages[reason]...)
	}
	condition.Message = strings.Join(all, "; ")
	if condition.Reason == "" {
		condition.Status, condition.Reason = metav1.ConditionTrue, ReasonKindServed
	}
	return condition
}
