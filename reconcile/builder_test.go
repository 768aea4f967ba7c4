package reconcile

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

func labelled(value string) func(*budget) bool {
	return func(b *budget) bool { return b.Labels["target"] == value }
}

func TestWithFilter(t *testing.T) {
	runs := 0
	h := newHarness(t, interceptor.Funcs{}, Named("one", stepFunc[*budget](func(context.Context, client.Client, *budget) error {
		runs++
		return nil
	})))
	h.WithFilter(labelled("ours"))
	require.Zero(t, h.pass(t))
	require.Zero(t, runs, "no step runs for an object that the filter excludes")
	require.Zero(t, h.writes)

	var b budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
	b.Labels = map[string]string{"target": "ours"}
	require.NoError(t, h.client.Update(t.Context(), &b))
	h.pass(t)
	require.Equal(t, 1, runs)
	require.Equal(t, 1, h.writes)
}

func TestWithFilterEvents(t *testing.T) {
	filter := (&Reconciler[*budget]{}).WithFilter(labelled("ours")).filterEvents()
	ours, theirs := newBudget(), newBudget()
	ours.Labels = map[string]string{"target": "ours"}
	for name, tc := range map[string]struct {
		reason string
		got    bool
		want   bool
	}{
		"CreatedOurs":   {"the filter selects the object", filter.Create(event.CreateEvent{Object: ours}), true},
		"CreatedTheirs": {"the filter excludes the object", filter.Create(event.CreateEvent{Object: theirs}), false},
		"Joins":         {"the object has become one of ours", filter.Update(event.UpdateEvent{ObjectOld: theirs, ObjectNew: ours}), true},
		"Leaves":        {"the object was one of ours, and its cleanup may be left to do", filter.Update(event.UpdateEvent{ObjectOld: ours, ObjectNew: theirs}), true},
		"NeverOurs":     {"the filter excludes the old and the new object", filter.Update(event.UpdateEvent{ObjectOld: theirs, ObjectNew: theirs}), false},
		"DeletedTheirs": {"it may have been one of ours, and what is remembered of it is forgotten", filter.Delete(event.DeleteEvent{Object: theirs}), true},
		"Generic":       {"the filter excludes the object", filter.Generic(event.GenericEvent{Object: theirs}), false},
	} {
		require.Equal(t, tc.want, tc.got, "%s: %s", name, tc.reason)
	}
}

func TestEventPredicates(t *testing.T) {
	// served passes the events of objects with a label. It passes an update only if the generation changes.
	served := predicate.And(predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetLabels()["served"] == "yes" }), predicate.GenerationChangedPredicate{})
	of := func(generation int64, labels map[string]string, requested string) *budget {
		b := newBudget()
		b.Generation, b.Labels, b.Annotations = generation, labels, map[string]string{RequestedAnnotation: requested}
		return b
	}
	ours, unserved, theirs := map[string]string{"served": "yes", "target": "ours"}, map[string]string{"target": "ours"}, map[string]string{"served": "yes"}
	for name, tc := range map[string]struct {
		reason        string
		before, after *budget // before is nil for a creation
		want          bool
	}{
		"Created":         {"both let it pass", nil, of(1, ours, ""), true},
		"CreatedUnserved": {"the predicate excludes the object", nil, of(1, unserved, ""), false},
		"CreatedTheirs":   {"the filter excludes the object", nil, of(1, theirs, ""), false},
		"Changed":         {"both let it pass", of(1, ours, ""), of(2, ours, ""), true},
		"StatusChanged":   {"the predicate excludes the update", of(1, ours, ""), of(1, ours, ""), false},
		"Asked":           {"a pass was asked for, and the object would pass as a new one", of(1, ours, ""), of(1, ours, "now"), true},
		"AskedUnserved":   {"a pass was asked for, and the predicate excludes the object", of(1, unserved, ""), of(1, unserved, "now"), false},
		"AskedTheirs":     {"a pass was asked for, and the filter excludes the object", of(1, theirs, ""), of(1, theirs, "now"), false},
	} {
		all := predicate.And((&Reconciler[*budget]{}).WithPredicates(served).WithFilter(labelled("ours")).eventPredicates()...)
		got := tc.before == nil && all.Create(event.CreateEvent{Object: tc.after}) ||
			tc.before != nil && all.Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after})
		require.Equal(t, tc.want, got, "%s: %s", name, tc.reason)
	}
	require.Empty(t, (&Reconciler[*budget]{}).eventPredicates(), "each event passes by default")
}

// managerStub is a manager that is never started.
type managerStub struct {
	ctrl.Manager
	client client.Client
}

func (m managerStub) GetClient() client.Client { return m.client }

func TestBuilderErrors(t *testing.T) {
	steps := Named("one", returning(nil))
	newOne := func() *Reconciler[*budget] { return New(fake.NewFakeClient(), steps) }
	pass := func(r *Reconciler[*budget]) error {
		_, err := r.Reconcile(t.Context(), request)
		return err
	}
	setup := func(r *Reconciler[*budget]) error { return r.SetupWithBuilder(nil, nil) }
	complete := func(r *Reconciler[*budget]) error { return r.Complete() }
	tests := map[string]struct {
		reason string
		r      *Reconciler[*budget]
		do     func(*Reconciler[*budget]) error
		says   string
	}{
		"CompleteOfNew": {"there is no manager to add the controller to", newOne(), complete, "make it with For, or add it to a builder of your own with SetupWithBuilder"},
		"SetupOfFor": {
			"the options of For would be ignored", For(managerStub{client: fake.NewFakeClient()}, steps), setup, "call Complete, or make it with New",
		},
		"OptionsOfNew": {"the options would be ignored", newOne().WithOptions(controller.Options{}), setup, "WithOptions needs a reconciler made by For"},
		"RateLimiter": {
			"controller-runtime never asks it about passes of this package", For(managerStub{client: fake.NewFakeClient()}, steps).WithOptions(controller.Options{
				RateLimiter: workqueue.DefaultTypedControllerRateLimiter[ctrl.Request](),
			}), complete, "WithOptions: a RateLimiter would never be asked, since a pass returns a delay and no error: set the delays with WithRetries",
		},
		"PredicatesOfNew":        {"the predicates would be ignored", newOne().WithPredicates(predicate.Funcs{}), setup, "WithPredicates needs a reconciler made by For"},
		"PredicatesInAUnitTest":  {"the first pass returns the error, also without a manager", newOne().WithPredicates(predicate.Funcs{}), pass, "call the method of the builder instead"},
		"CompleteWithoutAnyStep": {"a mistake is found before the manager starts", For[*budget](managerStub{client: fake.NewFakeClient()}), complete, "needs a step"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, tc.do(tc.r), tc.says, tc.reason)
		})
	}
}
