//go:build !race

// These tests are left out under the race detector: the modules of Prometheus are large, and the operator has its own tests with the race
// detector.

package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/opblocks/opblocks/reconcile"
)

// work is what a step does.
type work = func(context.Context, client.Client, *corev1.ConfigMap) error

// traced returns the spans of one pass over a ConfigMap, and the value of a panic in it. A span comes after its children, since the SDK
// records it when it ends.
func traced(t *testing.T, filter func(*corev1.ConfigMap) bool, step work) (spans tracetest.SpanStubs, panicked any) {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	r := reconcile.New(fake.NewClientBuilder().WithObjects(object).Build(), reconcile.Named("one", reconcile.Func(step))).
		WithoutStatus().WithFilter(filter).WithTracer(provider.Tracer("test"))
	defer func() { spans, panicked = exporter.GetSpans(), recover() }()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	require.NoError(t, err)
	return nil, nil
}

func all(*corev1.ConfigMap) bool { return true }

func TestSpans(t *testing.T) {
	spans, _ := traced(t, all, func(context.Context, client.Client, *corev1.ConfigMap) error { return errors.New("boom") })
	require.Len(t, spans, 2)
	step, pass := spans[0], spans[1]
	require.Equal(t, pass.SpanContext.SpanID(), step.Parent.SpanID(), "the step is a child of the pass")
	require.False(t, pass.Parent.IsValid(), "the pass is a trace of its own")
	require.False(t, step.EndTime.After(pass.EndTime))
	got := []string{step.Name + " " + step.Status.Code.String() + " " + step.Status.Description, pass.Name + " " + pass.Status.Code.String() + " " + pass.Status.Description}
	if diff := cmp.Diff([]string{"Step one Error Failed", "Reconcile ConfigMap Error Failed"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The SDK would record the value of a panic in a span. But a panic of a step becomes an outcome, and a panic of a filter is passed on
// without a record.
func TestSpansHaveNoPanic(t *testing.T) {
	for name, tc := range map[string]struct {
		filter   func(*corev1.ConfigMap) bool
		step     work
		spans    int
		panicked any
	}{
		"Step": {
			filter: all, step: func(context.Context, client.Client, *corev1.ConfigMap) error { panic("hunter2") }, spans: 2,
		},
		"Filter": {
			filter: func(*corev1.ConfigMap) bool { panic("hunter2") },
			step:   func(context.Context, client.Client, *corev1.ConfigMap) error { return nil }, spans: 1, panicked: "hunter2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			spans, panicked := traced(t, tc.filter, tc.step)
			require.Equal(t, tc.panicked, panicked)
			require.Len(t, spans, tc.spans)
			require.NotContains(t, fmt.Sprintf("%+v", spans), "hunter2")
		})
	}
}
