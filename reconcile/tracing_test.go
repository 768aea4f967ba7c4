package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// spanRecorder is a tracer that records its spans, in the order in which they started.
type spanRecorder struct {
	noop.Tracer
	spans []*recordedSpan
}

type recordedSpan struct {
	noop.Span
	name       string
	parent     *recordedSpan
	attributes map[attribute.Key]string
	failure    string
	ended      bool
}

func (r *spanRecorder) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	s := &recordedSpan{name: name, attributes: map[attribute.Key]string{}}
	s.parent, _ = trace.SpanFromContext(ctx).(*recordedSpan)
	config := trace.NewSpanStartConfig(options...)
	s.SetAttributes(config.Attributes()...)
	r.spans = append(r.spans, s)
	return trace.ContextWithSpan(ctx, s), s
}

func (s *recordedSpan) SetAttributes(attributes ...attribute.KeyValue) {
	for _, a := range attributes {
		s.attributes[a.Key] = fmt.Sprint(a.Value.AsInterface())
	}
}

func (s *recordedSpan) SetStatus(code codes.Code, description string) {
	if code == codes.Error {
		s.failure = description
	}
}

func (s *recordedSpan) End(...trace.SpanEndOption) { s.ended = true }

// String returns the span as text: "name: result reason, requeue after … (error: …)". Spans below a parent are
// indented.
func (s *recordedSpan) String() string {
	text := s.name + ": " + strings.TrimSpace(s.attributes["opblocks.result"]+" "+s.attributes["opblocks.reason"])
	if after := s.attributes["opblocks.requeue_after"]; after != "" {
		text += ", requeue after " + after
	}
	if s.failure != "" {
		text += fmt.Sprintf(" (error: %s)", s.failure)
	}
	if s.parent != nil {
		text = "  " + text
	}
	if !s.ended {
		text += ", which did not end"
	}
	return text
}

// take returns the spans since the last call, and forgets them.
func (r *spanRecorder) take() (all []string) {
	for _, s := range r.spans {
		all = append(all, s.String())
	}
	r.spans = nil
	return all
}

func TestTracer(t *testing.T) {
	const of = "Reconcile PodDisruptionBudget: "
	afterFailure := fmt.Sprint(", requeue after ", jitter(firstBackoff, request.NamespacedName, 0).Seconds())
	afterStalled := fmt.Sprint(", requeue after ", jitter(stalledRetry, request.NamespacedName, 0).Seconds())
	panicking := Func(func(context.Context, client.Client, *budget) error { panic("boom") })
	cases := map[string]struct {
		reason  string
		steps   []NamedStep[*budget]
		prepare func(t *testing.T, h *harness)
		want    []string // the spans of the last pass
	}{
		"Succeeded": {
			reason: "Each step is a child of the pass.",
			steps:  []NamedStep[*budget]{Named("one", returning(nil)), Named("two", returning(Success("Fine", 0, "x")))},
			want:   []string{of + "succeeded Succeeded", "  Step one: succeeded Succeeded", "  Step two: succeeded Fine"},
		},
		"Waiting": {
			reason: "That a step waits is no error.",
			steps:  []NamedStep[*budget]{Named("one", returning(Wait("Later", 90*time.Second, "x")))},
			want:   []string{of + "waiting Later, requeue after 90", "  Step one: waiting Later"},
		},
		"Failed": {
			reason: "The worst step decides the result of the pass.",
			steps:  []NamedStep[*budget]{Named("one", returning(WithReason("Down", errors.New("boom")))), Named("two", returning(nil))},
			want:   []string{of + "failed Down" + afterFailure + " (error: Down)", "  Step one: failed Down (error: Down)", "  Step two: succeeded Succeeded"},
		},
		"Stalled": {
			reason: "Somebody has to change something.",
			steps:  []NamedStep[*budget]{Named("one", returning(Stalled("Wrong", errors.New("boom"))))},
			want:   []string{of + "stalled Wrong" + afterStalled + " (error: Wrong)", "  Step one: stalled Wrong (error: Wrong)"},
		},
		"Halted": {
			reason: "A step that does not run has no span.",
			steps:  []NamedStep[*budget]{Named("one", returning(Halt(nil))), Named("two", returning(nil))},
			want:   []string{of + "skipped Skipped", "  Step one: succeeded Succeeded"},
		},
		"Panic": {
			reason: "A panic is a failure of the step, and its value may be secret.",
			steps:  []NamedStep[*budget]{Named("one", panicking)},
			want:   []string{of + "failed Failed" + afterFailure + " (error: Failed)", "  Step one: failed Failed (error: Failed)"},
		},
		"AfterSteps": {
			reason: "What a step does after all steps has a span of its own.",
			steps: []NamedStep[*budget]{
				Named("one", Func(func(ctx context.Context, _ client.Client, _ *budget) error {
					return afterSteps(ctx, func(context.Context) error { return Wait("Pruning", 0, "x") })
				})),
				Named("two", returning(nil)),
			},
			want: []string{of + "waiting Pruning", "  Step one: succeeded Succeeded", "  Step two: succeeded Succeeded", "  AfterSteps one: waiting Pruning"},
		},
		"Unchanged": {
			reason:  "No step would find anything to do.",
			steps:   []NamedStep[*budget]{Named("one", &settling{settled: true})},
			prepare: func(t *testing.T, h *harness) { h.pass(t); h.pass(t) },
			want:    []string{of + "unchanged"},
		},
		"Gone": {
			reason:  "There is no such object.",
			steps:   []NamedStep[*budget]{Named("one", returning(nil))},
			prepare: func(t *testing.T, h *harness) { h.delete(t) },
			want:    []string{of + "gone"},
		},
		"Filtered": {
			reason:  "The object is not ours.",
			steps:   []NamedStep[*budget]{Named("one", returning(nil))},
			prepare: func(_ *testing.T, h *harness) { h.WithFilter(func(*budget) bool { return false }) },
			want:    []string{of + "filtered"},
		},
		"Paused": {
			reason:  "No step runs.",
			steps:   []NamedStep[*budget]{Named("one", returning(nil))},
			prepare: func(t *testing.T, h *harness) { h.annotate(t, "true") },
			want:    []string{of + "paused"},
		},
		"CleanupWaits": {
			reason:  "The cleanup of a step has a span.",
			steps:   []NamedStep[*budget]{Named("one", cleaning{returning(nil), returning(Wait("Draining", 0, "x"))}).Finalizer("example.com/one")},
			prepare: func(t *testing.T, h *harness) { h.pass(t); h.delete(t) },
			want:    []string{of + "waiting Draining", "  Finalize one: waiting Draining"},
		},
		"Finalized": {
			reason:  "The cleanup has finished.",
			steps:   []NamedStep[*budget]{Named("one", cleaning{returning(nil), returning(nil)}).Finalizer("example.com/one")},
			prepare: func(t *testing.T, h *harness) { h.pass(t); h.delete(t) },
			want:    []string{of + "finalized", "  Finalize one: succeeded Succeeded"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h, spans := newHarness(t, interceptor.Funcs{}, tc.steps...), &spanRecorder{}
			h.WithTracer(spans)
			if tc.prepare != nil {
				tc.prepare(t, h)
			}
			spans.take()
			h.pass(t)
			if diff := cmp.Diff(tc.want, spans.take()); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTracerOfUnreadableObject(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
		return errors.New("boom")
	}}, Named("one", returning(nil)))
	spans := &spanRecorder{}
	h.WithTracer(spans)
	h.pass(t)
	require.Len(t, spans.spans, 1)
	require.Equal(t, "failed", spans.spans[0].attributes["opblocks.result"])
	require.Equal(t, "Failed", spans.spans[0].failure)
}

func TestSpanAttributes(t *testing.T) {
	h, spans := newHarness(t, interceptor.Funcs{}, Named("one", returning(nil))), &spanRecorder{}
	h.WithTracer(spans)
	h.pass(t)
	want := map[attribute.Key]string{
		"k8s.object.kind": "PodDisruptionBudget", "k8s.namespace.name": "ns", "k8s.object.name": "a",
		"opblocks.result": "succeeded", "opblocks.reason": "Succeeded",
	}
	if diff := cmp.Diff(want, spans.spans[0].attributes); diff != "" {
		t.Errorf("the pass (-want +got)\n%s", diff)
	}
	want = map[attribute.Key]string{"opblocks.step": "one", "opblocks.result": "succeeded", "opblocks.reason": "Succeeded"}
	if diff := cmp.Diff(want, spans.spans[1].attributes); diff != "" {
		t.Errorf("the step (-want +got)\n%s", diff)
	}
}

// Spans have no messages of errors, because a message may contain values of the spec or of a Secret.
func TestSpansHaveNoMessages(t *testing.T) {
	for name, step := range map[string]stepFunc[*budget]{
		"Error":   returning(errors.New("hunter2")),
		"Stalled": returning(Stalled("Wrong", errors.New("hunter2"))),
		"Wait":    returning(Wait("Later", 0, "hunter2")),
		"Success": returning(Success("Fine", 0, "hunter2")),
		"Panic":   func(context.Context, client.Client, *budget) error { panic("hunter2") },
	} {
		t.Run(name, func(t *testing.T) {
			h, spans := newHarness(t, interceptor.Funcs{}, Named("one", step)), &spanRecorder{}
			h.WithTracer(spans)
			h.pass(t)
			require.Len(t, spans.spans, 2)
			for _, s := range spans.spans {
				require.NotContains(t, fmt.Sprint(s, s.attributes), "hunter2")
			}
		})
	}
}

// The context that a step gets has the span of the step. So spans that the step starts become its children, and so do
// spans of its requests.
func TestStepContextHasSpan(t *testing.T) {
	var span trace.Span
	h := newHarness(t, interceptor.Funcs{}, Named("one", Func(func(ctx context.Context, _ client.Client, _ *budget) error {
		span = trace.SpanFromContext(ctx)
		return nil
	})))
	spans := &spanRecorder{}
	h.WithTracer(spans)
	h.pass(t)
	require.Same(t, spans.spans[1], span)
}

// TestTracingOffAllocatesNothing checks the functions that a pass calls for tracing. bench/budget_test.go checks
// the whole pass.
func TestTracingOffAllocatesNothing(t *testing.T) {
	h := newHarness(t, interceptor.Funcs{}, Named("one", returning(nil)))
	p := &pass{engine: &h.engine, object: passObject{engine: &h.engine}}
	outcomes := []outcome{{state: failed, reason: "Down"}}
	ctx := t.Context()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		stepContext, span := p.engine.tracer.start(ctx, spanStep, "one")
		endSpan(span, &outcomes[0])
		p.engine.tracer.outcomes(stepContext, outcomes)
		p.engine.tracer.result(stepContext, resultUnchanged)
	}))
}
