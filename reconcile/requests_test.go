package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/opblocks/opblocks/internal/record"
)

// Relay is a kind whose status acknowledges requests. Its definition is in testdata.
type Relay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            RelayStatus `json:"status,omitzero"`
}

type RelayStatus struct {
	Conditions             []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration     int64              `json:"observedGeneration,omitempty"`
	LastHandledReconcileAt string             `json:"lastHandledReconcileAt,omitempty"`
}

func (r *Relay) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = append([]metav1.Condition(nil), r.Status.Conditions...)
	return &c
}

type RelayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Relay `json:"items"`
}

func (l *RelayList) DeepCopyObject() runtime.Object {
	c := &RelayList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Relay))
	}
	return c
}

// RelayScheme returns a scheme that has the kind Relay.
func RelayScheme() *runtime.Scheme {
	types := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(types))
	gv := schema.GroupVersion{Group: "test.opblocks.dev", Version: "v1"}
	types.AddKnownTypes(gv, &Relay{}, &RelayList{})
	metav1.AddToGroupVersion(types, gv)
	return types
}

type relay = Relay

// relays has an operator of the kind Relay, with two steps.
type relays struct {
	*Reconciler[*relay]
	client client.Client
	errs   [2]error // the errors of the steps
	asked  []string // the steps and cleanups for which Requested returned true, since the last pass
	writes int
}

func newRelays(t *testing.T) *relays {
	t.Helper()
	r := &relays{}
	obj := &relay{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", Generation: 1}}
	r.client = fake.NewClientBuilder().WithScheme(RelayScheme()).WithObjects(obj).WithStatusSubresource(obj).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			r.writes++
			return c.SubResource(sub).Patch(ctx, obj, p, opts...)
		},
	}).Build()
	r.restart()
	r.pass(t)
	return r
}

// restart starts the operator as a new process, which remembers nothing.
func (r *relays) restart() {
	note := func(what string, err *error) stepFunc[*relay] {
		return func(ctx context.Context, _ client.Client, _ *relay) error {
			if Requested(ctx) {
				r.asked = append(r.asked, what)
			}
			return *err
		}
	}
	first := struct {
		Step[*relay]
		finalizer[*relay]
	}{note("first", &r.errs[0]), finalizer[*relay]{note("cleanup", &r.errs[0])}}
	r.Reconciler = New(r.client, Named("first", first).Finalizer("example.com/first"), Named("second", note("second", &r.errs[1])))
}

// finalizer is a step with a cleanup.
type finalizer[T client.Object] struct{ clean stepFunc[T] }

func (f finalizer[T]) Finalize(ctx context.Context, c client.Client, obj T) error {
	return f.clean(ctx, c, obj)
}

// pass runs a pass. It returns the steps for which Requested returned true, and the number of status writes.
func (r *relays) pass(t *testing.T) (asked []string, writes int) {
	t.Helper()
	r.asked, r.writes = nil, 0
	_, err := r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	return r.asked, r.writes
}

// annotate sets an annotation.
func (r *relays) annotate(t *testing.T, key, value string) {
	t.Helper()
	obj := r.stored(t)
	metav1.SetMetaDataAnnotation(&obj.ObjectMeta, key, value)
	require.NoError(t, r.client.Update(t.Context(), obj))
}

func (r *relays) stored(t *testing.T) *relay {
	t.Helper()
	obj := &relay{}
	require.NoError(t, r.client.Get(t.Context(), request.NamespacedName, obj))
	return obj
}

func (r *relays) handled(t *testing.T) string { return r.stored(t).Status.LastHandledReconcileAt }

func TestRequested(t *testing.T) {
	both := []string{"first", "second"}
	conflict := apierrors.NewConflict(resource, "x", errors.New("x"))
	// requirePass runs a pass and checks what it did.
	requirePass := func(t *testing.T, r *relays, reason string, want []string, handled string) {
		t.Helper()
		asked, writes := r.pass(t)
		require.Equal(t, want, asked, reason)
		require.Equal(t, handled, r.handled(t), reason)
		require.LessOrEqual(t, writes, 1, "the acknowledgement is a part of the status write")
	}
	tests := map[string]func(t *testing.T, r *relays){
		"EachValueOnce": func(t *testing.T, r *relays) {
			for _, value := range []string{"one", "2026-03-01T12:00:00Z", "one"} {
				r.annotate(t, RequestedAnnotation, value)
				asked, writes := r.pass(t)
				require.Equal(t, both, asked)
				require.Equal(t, value, r.handled(t))
				require.Equal(t, 1, writes)
				asked, writes = r.pass(t)
				require.Empty(t, asked, "the value was handled")
				require.Zero(t, writes)
				r.restart()
				asked, writes = r.pass(t)
				require.Empty(t, asked, "the status tells a new process that the value was handled")
				require.Zero(t, writes)
			}
		},
		"Empty": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "")
			asked, writes := r.pass(t)
			require.Empty(t, asked)
			require.Zero(t, writes)
		},
		"Failure": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[1] = errors.New("boom")
			requirePass(t, r, "a failure is an outcome too", both, "one")
			requirePass(t, r, "the step that has failed has not done what was requested", []string{"second"}, "one")
			r.errs[1] = nil
			requirePass(t, r, "it does it now", []string{"second"}, "one")
			requirePass(t, r, "everything was done", nil, "one")
		},
		"Stalled": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[0] = Stalled("X", errors.New("x"))
			requirePass(t, r, "a stall is an outcome too", both, "one")
		},
		"Wait": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[0] = Wait("X", time.Minute, "x")
			requirePass(t, r, "the step has begun what was requested", both, "one")
			requirePass(t, r, "it must not begin again in each pass", nil, "one")
		},
		"Halt": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[0] = Halt(Wait("X", time.Minute, "x"))
			requirePass(t, r, "the pass has an outcome", []string{"first"}, "one")
			r.errs[0] = nil
			requirePass(t, r, "the second step runs for the first time", []string{"second"}, "one")
			requirePass(t, r, "everything was done", nil, "one")
		},
		"Conflict": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[0] = conflict
			requirePass(t, r, "the repeated pass acknowledges it", both, "")
			r.errs[0] = nil
			requirePass(t, r, "the step that lost a race is asked again", []string{"first"}, "one")
		},
		"KeepConditions": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[0] = KeepConditions(nil)
			requirePass(t, r, "another writer acknowledges it", both, "")
			requirePass(t, r, "what was requested was done", nil, "")
		},
		"CrashBeforeTheStatusWrite": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[0] = conflict // after a conflict the status is not written
			requirePass(t, r, "", both, "")
			r.errs[0] = nil
			r.restart()
			requirePass(t, r, "a new process does everything again", both, "one")
		},
		"Paused": func(t *testing.T, r *relays) {
			r.annotate(t, PausedAnnotation, "true")
			r.annotate(t, RequestedAnnotation, "one")
			requirePass(t, r, "no step runs while the object is paused", nil, "")
			requirePass(t, r, "the same again", nil, "")
			r.annotate(t, PausedAnnotation, "false")
			requirePass(t, r, "the request has waited", both, "one")
		},
		"Deleted": func(t *testing.T, r *relays) {
			require.NoError(t, r.client.Delete(t.Context(), r.stored(t)))
			r.annotate(t, RequestedAnnotation, "one")
			r.errs[0] = errors.New("boom")
			requirePass(t, r, "a cleanup is asked as well", []string{"cleanup"}, "one")
			r.errs[0] = nil
			asked, _ := r.pass(t)
			require.Equal(t, []string{"cleanup"}, asked)
			require.True(t, apierrors.IsNotFound(r.client.Get(t.Context(), request.NamespacedName, &relay{})))
		},
		"Recreated": func(t *testing.T, r *relays) {
			r.annotate(t, RequestedAnnotation, "one")
			requirePass(t, r, "", both, "one")
			obj := r.stored(t)
			obj.Finalizers = nil
			require.NoError(t, r.client.Update(t.Context(), obj))
			require.NoError(t, r.client.Delete(t.Context(), obj))
			obj = &relay{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "other", Annotations: obj.Annotations}}
			require.NoError(t, r.client.Create(t.Context(), obj))
			requirePass(t, r, "another object of the same name has not handled it, also if no pass saw the first one gone", both, "one")
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, newRelays(t)) })
	}
	require.False(t, Requested(t.Context()), "outside of a pass")
}

// If the status has no field for the acknowledgement, only the process knows which request was handled.
func TestRequestedWithoutField(t *testing.T) {
	asked := 0
	step := Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		if Requested(ctx) {
			asked++
		}
		return nil
	})
	h := newHarness(t, interceptor.Funcs{}, Named("one", step))
	h.pass(t)
	h.edit(t, func(b *budget) { b.Annotations = map[string]string{RequestedAnnotation: "one"} })
	writes := h.writes
	for range 3 {
		h.pass(t)
	}
	require.Equal(t, 1, asked)
	require.Equal(t, writes, h.writes)
	h.Reconciler = New(h.client, Named("one", step))
	for range 3 {
		h.pass(t)
	}
	require.Equal(t, 2, asked, "a new process handles it once more")
}

func TestRequestedRunsSettledSteps(t *testing.T) {
	step := &settling{settled: true}
	h := newHarness(t, interceptor.Funcs{}, Named("one", step))
	h.pass(t)
	h.pass(t)
	h.pass(t)
	runs := step.runs
	h.edit(t, func(b *budget) { b.Annotations = map[string]string{RequestedAnnotation: "one"} })
	h.pass(t)
	require.Equal(t, runs+1, step.runs)
	h.pass(t)
	h.pass(t)
	require.Equal(t, runs+1, step.runs, "once for each value")
}

func TestOrAsked(t *testing.T) {
	with := func(label, value string) *budget {
		b := newBudget()
		b.Labels, b.Annotations = map[string]string{"target": label}, map[string]string{RequestedAnnotation: value}
		return b
	}
	paused := func(b *budget) *budget { b.Annotations[PausedAnnotation] = "true"; return b }
	interval := func(b *budget) *budget { b.Annotations = map[string]string{record.ObserveInterval: "1h"}; return b }
	generation := predicate.GenerationChangedPredicate{}
	ours := predicate.NewPredicateFuncs(func(obj client.Object) bool { return labelled("ours")(obj.(*budget)) })
	tests := map[string]struct {
		reason     string
		predicate  predicate.Predicate
		old, after *budget
		want       bool
	}{
		"Changed":    {"a predicate that looks for changes drops annotations", generation, with("", "one"), with("", "two"), true},
		"Added":      {"the first request", generation, newBudget(), with("", "one"), true},
		"Unchanged":  {"nothing is requested", generation, with("a", "one"), with("b", "one"), false},
		"Paused":     {"the pause is shown in the status", generation, with("", "one"), paused(with("", "one")), true},
		"Interval":   {"it takes effect at once", generation, newBudget(), interval(newBudget()), true},
		"Selected":   {"the object is selected", predicate.And(generation, ours), with("ours", "one"), with("ours", "two"), true},
		"Unselected": {"another operator reconciles the object", predicate.And(generation, ours), with("theirs", "one"), with("theirs", "two"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, orAsked(tc.predicate).Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.after}), tc.reason)
		})
	}
	p := orAsked(ours)
	require.True(t, p.Create(event.CreateEvent{Object: with("ours", "")}))
	require.False(t, p.Create(event.CreateEvent{Object: with("theirs", "one")}))
	require.False(t, p.Delete(event.DeleteEvent{Object: with("theirs", "one")}))
	require.False(t, p.Generic(event.GenericEvent{Object: with("theirs", "one")}))
}
