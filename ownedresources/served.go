package ownedresources

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/servedkinds"
)

// IfServed leaves the child out while the API server does not serve its kind, such as a ServiceMonitor where the
// Prometheus operator is not installed. While it is left out, the child is neither built nor read nor pruned, and
// counts as ready: neither the error of [ChildSet.Reconcile] nor what comes after the child depends on it. When the
// kind becomes served or ceases to be, its watch starts or stops without a restart of the operator, and all owners are
// reconciled.
//
// In a pass of package reconcile a condition of the given type shows it. Ready does not depend on the condition. It is
// False with the reason KindNotServed while the child is left out, False with the reason NotReady while it is not
// ready, and True with the reason KindServed otherwise. Several children may have the same type. By default no
// condition shows it.
//
// A kind is also not served while its CustomResourceDefinition is being deleted, and if its version is not served. With
// the permissions list and watch for customresourcedefinitions a change takes effect within seconds. Without them, and
// for kinds of aggregated API servers, it takes up to a minute. The permissions for the kind itself can be granted
// before it exists. If list or watch is missing when the kind appears, the child stays left out with the reason
// KindNotWatched, and a manager of package reconcile ends with an error, as for any kind.
//
// All children of a kind in one manager need this option if one has it, and no controller of that manager may watch the
// kind in another way: its watch would end with the kind, for ever. The event filter of a builder does not apply to the
// kind.
//
// Without a manager the RESTMapper of the client is asked, which does not forget a kind.
func IfServed(conditionType ...string) ChildOption {
	return func(o *childOptions) {
		o.ifServed = true
		o.servedConditions = append(o.servedConditions, conditionType...)
	}
}

const (
	reasonKindServed     = "KindServed"
	reasonKindNotServed  = "KindNotServed"
	reasonKindNotWatched = "KindNotWatched"
	reasonNotReady       = "NotReady"
	reasonSchemaMissing  = "SchemaNotServed"
)

// schemaRetry is the delay before a schema is asked for again. The API server publishes it shortly after it serves the
// kind.
const schemaRetry = time.Second

// servedWatches are the watches of the kinds with the option IfServed, by kind. They are nil without a manager.
type servedWatches = map[schema.GroupVersionKind]*servedkinds.Watch

// conditionTypes returns the condition types of [IfServed].
func (s *set) conditionTypes() (types []string) {
	for _, child := range s.children {
		if child != nil { // a mistake, which Reconcile returns
			types = append(types, child.options.servedConditions...)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// checkServed returns whether the children of a kind have the option IfServed. If only some have it, that is an error.
func (s *set) checkServed(gvk schema.GroupVersionKind, scheme *runtime.Scheme) (ifServed bool, err error) {
	var all []bool
	for _, child := range s.children {
		if kind, err := apiutil.GVKForObject(child.sample, scheme); err == nil && kind == gvk {
			all = append(all, child.options.ifServed)
		}
	}
	if slices.Contains(all, true) && slices.Contains(all, false) {
		return false, fmt.Errorf("children of kind %s: some have the option IfServed and some have not: give it to all", gvk.Kind)
	}
	return slices.Contains(all, true), nil
}

// watchWhileServed returns the watch of a kind with the option IfServed.
func (s *set) watchWhileServed(mgr ctrl.Manager, child client.Object, gvk schema.GroupVersionKind) (*servedkinds.Watch, error) {
	kinds, err := servedkinds.ForManager(mgr)
	if err != nil {
		return nil, err
	}
	owner := s.newOwner()
	owned := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), owner, handler.OnlyControllerOwner())
	handlers := []servedkinds.Handler{
		{Handler: owned, Predicates: []predicate.Predicate{s.observe()}},
		{Handler: s.enqueueBlocked(gvk.GroupKind())},
	}
	if marked, err := s.enqueueMarked(mgr, owner, gvk); err != nil {
		return nil, err
	} else if marked != nil {
		handlers = append(handlers, servedkinds.Handler{Handler: marked})
	}
	w, err := kinds.Watch(child, servedkinds.Options{
		Indexes:  map[string]client.IndexerFunc{controllerIndex: controllerValue},
		Handlers: handlers,
		Requests: func(ctx context.Context) ([]ctrl.Request, error) { return s.allOwners(ctx, mgr) },
		Appeared: func() { s.applier.kinds.forget(gvk) },
		Gone:     func(ctx context.Context) { s.forgetChildren(ctx, child, gvk, mgr.GetScheme()) },
	})
	if err != nil {
		return nil, err
	}
	if s.served == nil {
		s.served = servedWatches{}
	}
	s.served[gvk] = w
	return w, nil
}

// allOwners returns a request for every T in the cache.
func (s *set) allOwners(ctx context.Context, mgr ctrl.Manager) (requests []ctrl.Request, err error) {
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
	for _, owner := range itemsOf(list) {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(owner)})
	}
	return requests, nil
}

// forgetChildren drops what is remembered of the children of a kind that is gone: no event of their deletion may come.
func (s *set) forgetChildren(ctx context.Context, sample client.Object, gvk schema.GroupVersionKind, scheme *runtime.Scheme) {
	list := newList(sample, gvk, scheme)
	if err := s.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).V(1).Info("Cannot list the children of a kind that is gone", "kind", gvk.String(), "reason", err.Error())
	}
	for _, child := range itemsOf(list) {
		s.applier.children.forget(child.GetUID())
	}
}

// servedState is whether the kind of a child with the option IfServed is served in one reconcile.
type servedState int

const (
	alwaysServed servedState = iota // without the option
	notServed
	notWatched // served, but the cache does not have its objects yet
	servedNow
)

// acquire reports whether the kind of a child may be read. If so, the caller must call release.
func (s *set) acquire(child *child, gvk schema.GroupVersionKind, c client.Client) (servedState, error) {
	if !child.options.ifServed {
		return alwaysServed, nil
	}
	if w := s.served[gvk]; w != nil {
		switch {
		case w.Acquire():
			return servedNow, nil
		case w.Served():
			return notWatched, nil
		}
		return notServed, nil
	}
	_, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	switch {
	case meta.IsNoMatchError(err):
		return notServed, nil
	case err != nil:
		return notServed, fmt.Errorf("%s: find out whether its kind is served: %w", child.describe(), err)
	}
	return servedNow, nil
}

func (s *set) release(state servedState, gvk schema.GroupVersionKind) {
	if w := s.served[gvk]; w != nil && state == servedNow {
		w.Release()
	}
}

// listIfServed lists objects of the kind of a child. It returns served as false if the kind is not served.
func (s *set) listIfServed(ctx context.Context, o *owner, child *child, gvk schema.GroupVersionKind, bucket string) (list []client.Object, served bool, err error) {
	state, err := s.acquire(child, gvk, o.client)
	if err != nil || state == notServed || state == notWatched {
		return nil, false, err
	}
	defer s.release(state, gvk)
	list, err = s.list(ctx, o, child.sample, gvk, bucket)
	return list, true, err
}

// knows reports whether all desired objects of a kind are known.
func (d desiredNames) knows(k *kind) bool {
	return !slices.ContainsFunc(d.unbuilt, func(other *kind) bool { return other.gvk.GroupKind() == k.gvk.GroupKind() })
}

// refusalRetry is the delay before a child is tried again if its kind is no longer served. Its watch usually notices
// before.
const refusalRetry = 5 * time.Second

// checkRefusal returns the error of a child with the option IfServed. If the API server has just ceased to serve its
// kind, that is not a failure, and the watch checks again whether the kind is served.
func (s *set) checkRefusal(d *declared, err error) error {
	if !meta.IsNoMatchError(err) && !apierrors.IsMethodNotSupported(err) && !isUnknownResource(err) {
		return err
	}
	if w := s.served[d.kind.gvk]; w != nil {
		w.CheckAgain()
	}
	return &WaitingError{reason: reasonKindNotServed, after: refusalRetry, message: fmt.Sprintf(
		"%s: its kind is not served any more: %v", d.kind.describe(d.object), err)}
}

// isUnknownResource reports whether the API server has no such resource, rather than no such object.
func isUnknownResource(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// leftOut reports whether the child is left out of this reconcile.
func (s *childState) leftOut() bool { return s.served == notServed || s.served == notWatched }

// acquireServed finds out which children are left out, and returns a function that ends the permission to read the others.
func (r *reconciliation) acquireServed() (release func()) {
	r.kinds = slices.Clone(r.kinds)
	for i, child := range r.set.children {
		state := &r.states[i]
		var err error
		if state.served, err = r.set.acquire(child, r.kinds[i].gvk, r.client); err != nil {
			r.fail(i, child.describe(), err) // what comes after it waits: perhaps the kind is served
		}
		if state.served != servedNow {
			continue
		}
		// Compiled only now: the API server has no schema of a kind that it does not serve.
		compiled, err := r.set.compile(child, r.client.Scheme())
		if err != nil {
			state.unusable = &WaitingError{reason: reasonSchemaMissing, after: schemaRetry, message: fmt.Sprintf(
				"%s: its kind is served, but its schema is not yet: %v", child.describe(), err)}
			continue
		}
		r.kinds[i] = compiled
	}
	return func() {
		for i := range r.states {
			r.set.release(r.states[i].served, r.kinds[i].gvk)
		}
	}
}

// servedAs reports whether the same kinds are served as then. The caller must call release after its reads.
func (s *set) servedAs(c client.Client, then []servedState) (release func(), same bool) {
	kinds, err := s.kindsIn(c.Scheme())
	if err != nil {
		return func() {}, false
	}
	now := make([]servedState, len(kinds))
	same = true
	for i, child := range s.children {
		state, err := s.acquire(child, kinds[i].gvk, c)
		now[i], same = state, same && err == nil && state == then[i]
	}
	return func() {
		for i, k := range kinds {
			s.release(now[i], k.gvk)
		}
	}, same
}

// noteServed sets the conditions of the children with the option IfServed.
func (r *reconciliation) noteServed() {
	pass := passcontext.FromContext(r.ctx)
	if pass == nil {
		return
	}
	for _, conditionType := range r.set.conditionTypes() {
		pass.SetCondition(r.servedCondition(conditionType))
	}
}

// servedCondition returns a condition of the children that have its type. Children that are left out come first.
func (r *reconciliation) servedCondition(conditionType string) metav1.Condition {
	messages := map[string][]string{}
	for i, child := range r.set.children {
		if !slices.Contains(child.options.servedConditions, conditionType) {
			continue
		}
		gvk, state := r.kinds[i].gvk, &r.states[i]
		reason, message := reasonKindServed, ""
		switch {
		case state.served == notServed:
			reason, message = reasonKindNotServed, fmt.Sprintf("%s of %s is not served by the API server, so it is left out", gvk.Kind, gvk.GroupVersion())
		case state.served == notWatched:
			reason, message = reasonKindNotWatched, fmt.Sprintf("%s of %s is left out until its watch has started, for which the operator needs get, list and watch", gvk.Kind, gvk.GroupVersion())
		case state.notReady != "":
			reason, message = reasonNotReady, state.notReady+" is not ready"
		}
		if !slices.Contains(messages[reason], message) {
			messages[reason] = append(messages[reason], message)
		}
	}
	condition := metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse}
	var all []string
	for _, reason := range []string{reasonKindNotServed, reasonKindNotWatched, reasonNotReady} {
		if len(messages[reason]) > 0 && condition.Reason == "" {
			condition.Reason = reason
		}
		all = append(all, messages[reason]...)
	}
	condition.Message = strings.Join(all, "; ")
	if condition.Reason == "" {
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonKindServed
	}
	return condition
}

// uncompiled returns the kind of a child without its schema: one for all children of the kind.
func (ks *childKinds) uncompiled(sample client.Object, scheme *runtime.Scheme) (*kind, error) {
	gvk, err := apiutil.GVKForObject(sample, scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	for _, k := range ks.kinds {
		if k.gvk == gvk && k.comparer == nil {
			return k, nil
		}
	}
	return &kind{gvk: gvk, typ: reflect.TypeOf(sample).Elem()}, nil
}

// forget drops what was compiled for a kind: its CustomResourceDefinition may be another one now.
func (ks *kinds) forget(gvk schema.GroupVersionKind) {
	ks.known.Range(func(key, known any) bool {
		if known.(*kind).gvk == gvk {
			ks.known.Delete(key)
		}
		return true
	})
}
