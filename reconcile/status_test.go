package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
)

func TestStatusPatch(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*policyv1.PodDisruptionBudgetStatus)
		want   string
	}{
		"Field": {
			reason: "the patch has only the changed field, and needs no lock",
			change: func(s *policyv1.PodDisruptionBudgetStatus) { s.CurrentHealthy = 2 },
			want:   `{"metadata":{"uid":"u"},"status":{"currentHealthy":2}}`,
		},
		"List": {
			reason: "a merge patch replaces the whole list, so it needs a lock",
			change: func(s *policyv1.PodDisruptionBudgetStatus) {
				s.Conditions = []metav1.Condition{{Type: "X", Status: "True", Reason: "Y"}}
			},
			want: `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"conditions":[{"lastTransitionTime":null,"message":"","reason":"Y","status":"True","type":"X"}]}}`,
		},
		"Removal": {
			reason: "what is removed may be a list that another writer has changed, so it needs a lock",
			change: func(s *policyv1.PodDisruptionBudgetStatus) { s.DisruptedPods = nil },
			want:   `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"disruptedPods":null}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			before := newBudget()
			before.ResourceVersion = "7"
			before.Status.DisruptedPods = map[string]metav1.Time{"p": {Time: noon}}
			after := before.DeepCopy()
			after.Labels = map[string]string{"step": "changed this"}
			tc.change(&after.Status)
			r := New(fake.NewFakeClient(), Named("one", returning(nil)))
			require.NoError(t, r.prepare())
			require.False(t, r.status.Equal(before, after))
			got, err := r.status.Patch(before, after, false)
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, string(got), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStatusPatchOfEmptyStatus(t *testing.T) {
	before := newBudget()
	before.ResourceVersion = "7"
	after := before.DeepCopy()
	after.Status.ObservedGeneration = 1
	r := New(fake.NewFakeClient(), Named("one", returning(nil)))
	require.NoError(t, r.prepare())
	got, err := r.status.Patch(before, after, false)
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"resourceVersion":"7","uid":"u"},"status":{"currentHealthy":0,"desiredHealthy":0,"disruptionsAllowed":0,"expectedPods":0,"observedGeneration":1}}`,
		string(got), "a schema may require a field that stayed zero")
}

func TestStatusWriteErrors(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		again  bool
	}{
		"Conflict":  {reason: "the pass is repeated", err: apierrors.NewConflict(resource, "a", errors.New("modified")), again: true},
		"NotFound":  {reason: "the object was deleted: there is nothing to write or to retry", err: apierrors.NewNotFound(resource, "a")},
		"Forbidden": {reason: "a permission may be added, so the pass is repeated", err: apierrors.NewForbidden(resource, "a", errors.New("no")), again: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, _ string, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
				if apierrors.IsNotFound(tc.err) {
					return errors.Join(c.Delete(ctx, obj), tc.err)
				}
				return tc.err
			}}, Named("one", returning(nil)))
			require.Equal(t, tc.again, h.pass(t).RequeueAfter > 0, tc.reason)
		})
	}
}

func TestTransitionTimeIsKept(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(_ context.Context, _ client.Client, b *budget) error {
		for _, status := range []metav1.ConditionStatus{"True", "False"} {
			if _, _, err := conditions.Set(&b.Status.Conditions, metav1.Condition{Type: "Flapping", Status: status, Reason: "X"}); err != nil {
				return err
			}
		}
		return nil
	})))
	h.pass(t)
	for range 3 {
		h.pass(t)
	}
	require.Equal(t, 1, h.writes, "a status that ends as it began is not written")
}

// lamp is a kind whose conditions have their own struct.
type lamp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            lampStatus `json:"status"`
}

type lampStatus struct{ lampState }

type lampState struct {
	Conditions         []light  `json:"conditions,omitempty"`
	ObservedGeneration int64    `json:"observedGeneration,omitempty"`
	Rooms              []string `json:"rooms"`

	Levels map[string]int `json:"levels"`
}

type light struct {
	Type string `json:"type"`
	On   string `json:"on"`
}

func (l *lamp) DeepCopyObject() runtime.Object { c := *l; return &c }

type lights struct{}

func (lights) Read(l light) metav1.Condition {
	return metav1.Condition{Type: l.Type, Status: metav1.ConditionStatus(l.On)}
}

func (lights) Write(_ light, to metav1.Condition, _ metav1.Time) light {
	return light{Type: to.Type, On: string(to.Status)}
}

func (lights) Validate(metav1.Condition) error { return nil }

func lampScheme() *runtime.Scheme {
	types := runtime.NewScheme()
	gv := schema.GroupVersion{Group: "test.opblocks.dev", Version: "v1"}
	types.AddKnownTypes(gv, &lamp{})
	metav1.AddToGroupVersion(types, gv)
	return types
}

func TestWithConditions(t *testing.T) {
	types := lampScheme()
	l := &lamp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 2}}
	c := fake.NewClientBuilder().WithScheme(types).WithObjects(l).WithStatusSubresource(l).Build()
	step := Named("one", Func(func(context.Context, client.Client, *lamp) error { return nil }))

	_, err := New(c, step).Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "pass an adapter to WithConditions")

	_, err = New(c, step).WithConditions(conditions.NewEditor[light](lights{})).Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), request.NamespacedName, l))
	want := lampState{Conditions: []light{{"Ready", "True"}}, ObservedGeneration: 2, Rooms: []string{}, Levels: map[string]int{}}
	if diff := cmp.Diff(want, l.Status.lampState); diff != "" {
		t.Errorf("found through an embedded struct; a required list or map is empty, not null (-want +got)\n%s", diff)
	}
}

func TestKindWithoutStatusSubresource(t *testing.T) {
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	types, l := lampScheme(), &lamp{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	c := fake.NewClientBuilder().WithScheme(types).WithObjects(l).Build()
	step := Named("one", Func(func(context.Context, client.Client, *lamp) error { return nil }))
	result, err := New(c, step).WithConditions(conditions.NewEditor[light](lights{})).Reconcile(ctx, request)
	require.ErrorContains(t, err, "+kubebuilder:subresource:status", "the error says what to add")
	require.ErrorContains(t, err, "WithStatusSubresource", "and in a test")
	require.NotErrorIs(t, err, ctrlreconcile.TerminalError(nil), "a corrected definition heals it")
	require.Zero(t, result, "controller-runtime ignores a delay beside an error")
	require.Empty(t, lines, "controller-runtime logs what is returned")
}

func TestKindWithoutStatus(t *testing.T) {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(cm).Build()
	r := New(c, Named("one", Func(func(context.Context, client.Client, *corev1.ConfigMap) error { return Wait("X", time.Second, "x") })))
	result, err := r.Reconcile(t.Context(), request)
	require.NoError(t, err)
	require.Equal(t, time.Second, result.RequeueAfter)
}

// Deployments have their own condition struct, and the Deployment controller sets their conditions. So the pass must
// not write the status.
func TestWithoutStatus(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		step   stepFunc[*appsv1.Deployment]
		paused bool
		after  time.Duration
		events int
	}{
		"Success": {reason: "a change of the status in memory is not written", step: func(_ context.Context, _ client.Client, d *appsv1.Deployment) error {
			d.Status.Replicas = 7 // the status belongs to another controller
			return nil
		}},
		"Wait":    {reason: "the delay of the wait counts also without conditions", step: func(context.Context, client.Client, *appsv1.Deployment) error { return Wait("X", time.Minute, "x") }, after: time.Minute},
		"Failure": {reason: "an event shows the failure, which is retried with backoff", step: func(context.Context, client.Client, *appsv1.Deployment) error { return boom }, after: firstBackoff, events: 1},
		"Paused":  {reason: "the annotation pauses also without a condition", step: func(context.Context, client.Client, *appsv1.Deployment) error { return boom }, paused: true},
		"Checkpoint": {reason: "a checkpoint could not record anything, so it returns an error", step: func(ctx context.Context, _ client.Client, d *appsv1.Deployment) error {
			d.Status.Replicas = 7
			return Checkpoint(ctx)
		}, after: firstBackoff, events: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			writes := 0
			count := func() { writes++ }
			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 2}}
			if tc.paused {
				d.Annotations = map[string]string{PausedAnnotation: "true"}
			}
			c := fake.NewClientBuilder().WithObjects(d).WithStatusSubresource(d).WithInterceptorFuncs(interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					count()
					return nil
				},
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					count()
					return nil
				},
			}).Build()
			recorder := &recorder{}
			r := New(c, Named("one", Func(tc.step))).WithoutStatus()
			r.recorder = recorder
			for range 2 {
				result, err := r.Reconcile(t.Context(), request)
				require.NoError(t, err)
				require.GreaterOrEqual(t, result.RequeueAfter, tc.after, tc.reason)
				require.LessOrEqual(t, result.RequeueAfter, 3*tc.after, tc.reason)
			}
			require.Zero(t, writes, tc.reason)
			require.Len(t, recorder.take(), tc.events, tc.reason)
		})
	}
}

func TestWithoutStatusErrors(t *testing.T) {
	c := fake.NewFakeClient()
	step := Func(func(context.Context, client.Client, *appsv1.Deployment) error { return nil })
	_, err := New(c, Named("one", step)).Reconcile(t.Context(), request)
	require.ErrorContains(t, err, "or call WithoutStatus if the status is not yours")
	_, err = New(c, Named("one", step).Reporting("Available")).WithoutStatus().Reconcile(t.Context(), request)
	require.ErrorContains(t, err, `step "one" reports the condition "Available", but WithoutStatus says that the status is not ours`)
	_, err = New(c, Named("one", conditionStep{"Monitoring"})).WithoutStatus().Reconcile(t.Context(), request)
	require.ErrorContains(t, err, `step "one" sets the condition "Monitoring", but WithoutStatus says that the status is not ours`)
}

// repeating is a step with the method StatusNotWritten, which counts its calls.
type repeating struct {
	stepFunc[*budget]
	lost []string
}

func (a *repeating) StatusNotWritten(name types.NamespacedName) {
	a.lost = append(a.lost, name.String())
}

func TestStatusNotWritten(t *testing.T) {
	budgets := schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}
	for name, tc := range map[string]struct {
		reason string
		answer error
		want   int
	}{
		"written":  {"nothing is lost", nil, 0},
		"refused":  {"the step has to say it again", errors.New("refused"), 1},
		"conflict": {"the next pass works on another object", apierrors.NewConflict(budgets, "sample", errors.New("changed")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			step := &repeating{stepFunc: returning(nil)}
			h := newHarness(t, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if tc.answer != nil {
					return tc.answer
				}
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			}}, Named("one", step))
			h.pass(t)
			require.Len(t, step.lost, tc.want, tc.reason)
			tc.answer = nil
			h.pass(t)
			h.pass(t)
			require.Len(t, step.lost, tc.want, "it was written, and then nothing changes")
		})
	}
}
