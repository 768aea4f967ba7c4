package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// Budget is the kind that is reconciled in the tests of the packages reconcile and reconcile_test. It has everything that a
// reconciled kind needs: a spec, conditions and an observed generation. In these tests no other controller reconciles it.
type Budget = policyv1.PodDisruptionBudget

type budget = Budget

var request = ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "a"}}

func newBudget() *budget {
	return &budget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "u", Generation: 3}}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// harness has a reconciler and a fake client, and counts status writes.
type harness struct {
	*Reconciler[*budget]
	client client.Client
	clock  *clocktesting.FakePassiveClock
	writes int
}

// harnessScheme has only the groups that the tests use, because each fake client computes a RESTMapper for all kinds
// in its scheme, which takes time.
var harnessScheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(policyv1.AddToScheme(s))
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(appsv1.AddToScheme(s))
	return s
}()

// typeConverters returns the type converters for all fake clients, which would otherwise make their own.
var typeConverters = sync.OnceValue(func() []managedfields.TypeConverter {
	return []managedfields.TypeConverter{applyconfigurations.NewTypeConverter(clientgoscheme.Scheme), managedfields.NewDeducedTypeConverter()}
})

func newHarness(t *testing.T, funcs interceptor.Funcs, steps ...NamedStep[*budget]) *harness {
	t.Helper()
	h := &harness{clock: clocktesting.NewFakePassiveClock(noon)}
	patch := funcs.SubResourcePatch
	funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		h.writes++
		if patch != nil {
			return patch(ctx, c, sub, obj, p, opts...)
		}
		return c.SubResource(sub).Patch(ctx, obj, p, opts...)
	}
	h.client = fake.NewClientBuilder().WithScheme(harnessScheme).WithTypeConverters(typeConverters()...).WithObjects(newBudget()).WithStatusSubresource(&budget{}).WithInterceptorFuncs(funcs).Build()
	h.Reconciler = New(h.client, steps...).WithClock(h.clock)
	return h
}

func (h *harness) pass(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := h.Reconcile(t.Context(), request)
	require.NoError(t, err)
	return result
}

func (h *harness) status(t *testing.T) policyv1.PodDisruptionBudgetStatus {
	t.Helper()
	var b budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
	return b.Status
}

func (h *harness) stored(t *testing.T) *budget {
	t.Helper()
	b := &budget{}
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, b))
	return b
}

// edit changes the object as a user would.
func (h *harness) edit(t *testing.T, change func(*budget)) {
	t.Helper()
	var b budget
	require.NoError(t, h.client.Get(t.Context(), request.NamespacedName, &b))
	change(&b)
	require.NoError(t, h.client.Update(t.Context(), &b))
}

func (h *harness) annotate(t *testing.T, value string) {
	t.Helper()
	h.edit(t, func(b *budget) { b.Annotations = map[string]string{PausedAnnotation: value} })
}

func (h *harness) delete(t *testing.T) {
	t.Helper()
	require.NoError(t, h.client.Delete(t.Context(), newBudget()))
}

func (h *harness) finalizers(t *testing.T) []string {
	t.Helper()
	var b budget
	if err := h.client.Get(t.Context(), request.NamespacedName, &b); err != nil {
		require.True(t, apierrors.IsNotFound(err), err)
		return []string{"the object is gone"}
	}
	return b.Finalizers
}

type condition struct{ Type, Status, Reason, Message string }

func conditionsOf(s policyv1.PodDisruptionBudgetStatus) []condition {
	var list []condition
	for _, c := range s.Conditions {
		list = append(list, condition{c.Type, string(c.Status), c.Reason, c.Message})
	}
	return list
}

var resource = schema.GroupResource{Resource: "things"}

func returning(err error) stepFunc[*budget] {
	return func(context.Context, client.Client, *budget) error { return err }
}

func counting(n *int) stepFunc[*budget] {
	return func(context.Context, client.Client, *budget) error { *n++; return nil }
}

func noting(notes *[]string, what string, err *error) stepFunc[*budget] {
	return func(context.Context, client.Client, *budget) error {
		*notes = append(*notes, what)
		if err == nil {
			return nil
		}
		return *err
	}
}

// Cleaning is a step with a cleanup.
type Cleaning struct {
	Step[*budget]
	Cleanup func(ctx context.Context, c client.Client, b *budget) error
}

type cleaning = Cleaning

// Finalize runs the cleanup.
func (c Cleaning) Finalize(ctx context.Context, cl client.Client, b *budget) error {
	return c.Cleanup(ctx, cl, b)
}

// patches counts the requests that change the object itself.
func patches(n *int, err func() error) interceptor.Funcs {
	return interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
		*n++
		if err != nil {
			if err := err(); err != nil {
				return err
			}
		}
		return c.Patch(ctx, obj, p, opts...)
	}}
}

// afterSteps registers a function that runs after all steps, as package ownedresources does.
func afterSteps(ctx context.Context, do func(ctx context.Context) error) error {
	passcontext.FromContext(ctx).AfterSteps(do)
	return nil
}

// recorder is an event recorder that keeps the events.
type recorder struct{ events []sent }

type sent struct{ Type, Reason, Action, Note string }

func (r *recorder) Eventf(_, _ runtime.Object, eventType, reason, action, _ string, args ...any) {
	r.events = append(r.events, sent{eventType, reason, action, args[0].(string)})
}

func (r *recorder) take() []sent {
	defer func() { r.events = nil }()
	return r.events
}

type logs struct{ lines []string }

func (l *logs) into(ctx context.Context) context.Context {
	return log.IntoContext(ctx, funcr.New(func(_, args string) { l.lines = append(l.lines, args) }, funcr.Options{Verbosity: 9}))
}

type registry struct{ *prometheus.Registry }

// withMetrics registers the metrics of the harness in a new registry.
func (h *harness) withMetrics(t *testing.T) registry {
	t.Helper()
	r := registry{prometheus.NewRegistry()}
	var err error
	h.metrics, err = newMetrics(r, "PodDisruptionBudget")
	require.NoError(t, err)
	return r
}

// text returns all metrics as text.
func (r registry) text(t *testing.T) string {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	var b strings.Builder
	for _, f := range families {
		b.WriteString(f.String())
	}
	return b.String()
}

// series returns the series of a metric as "label=value … number".
func (r registry) series(t *testing.T, name string) []string {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	var all []string
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			line := ""
			for _, l := range m.GetLabel() {
				line += l.GetName() + "=" + l.GetValue() + " "
			}
			all = append(all, fmt.Sprint(line, m.GetGauge().GetValue()+m.GetCounter().GetValue()+float64(m.GetHistogram().GetSampleCount())))
		}
	}
	return all
}
