package reconcile

import (
	"cmp"
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// The name of a span begins with one of these. The kind of the object or the name of the step follows.
const (
	spanPass       = "Reconcile "
	spanStep       = "Step "
	spanAfterSteps = "AfterSteps "
	spanFinalize   = "Finalize "
)

// The attributes of spans. Namespace, kind and name have the keys of OpenTelemetry's receivers for Kubernetes.
const (
	attributeKind         = attribute.Key("k8s.object.kind")
	attributeNamespace    = attribute.Key("k8s.namespace.name")
	attributeName         = attribute.Key("k8s.object.name")
	attributeReconcileID  = attribute.Key("opblocks.reconcile_id")
	attributeStep         = attribute.Key("opblocks.step")
	attributeResult       = attribute.Key("opblocks.result")
	attributeReason       = attribute.Key("opblocks.reason")
	attributeRequeueAfter = attribute.Key("opblocks.requeue_after")
)

// runTraced runs the pass in a span.
func (p *pass) runTraced(ctx context.Context) ctrl.Result {
	ctx, span := p.engine.tracer.Start(ctx, spanPass+p.engine.kind.Kind, trace.WithAttributes(attributeKind.String(p.engine.kind.Kind), attributeName.String(p.object.name.Name)))
	// In a deferred call of End itself, a panic would be recorded in the span, and its value may be secret.
	defer func() { span.End() }()
	if p.object.name.Namespace != "" {
		span.SetAttributes(attributeNamespace.String(p.object.name.Namespace))
	}
	if id := controller.ReconcileIDFromContext(ctx); id != "" {
		span.SetAttributes(attributeReconcileID.String(string(id)))
	}
	result := p.run(ctx)
	if result.RequeueAfter > 0 {
		span.SetAttributes(attributeRequeueAfter.Float64(result.RequeueAfter.Seconds()))
	}
	return result
}

// passTracer is the tracer of a reconciler. If the reconciler has no tracer, the methods do nothing.
type passTracer struct{ trace.Tracer }

// start starts the span of a step and returns the context for the step. The name of the span is verb followed by step.
// Without a tracer the span is nil.
func (t passTracer) start(ctx context.Context, verb, step string) (context.Context, trace.Span) {
	if t.Tracer == nil {
		return ctx, nil
	}
	return t.Start(ctx, verb+step, trace.WithAttributes(attributeStep.String(step)))
}

// endSpan ends the span of a step with its outcome.
func endSpan(span trace.Span, o *outcome) {
	if span == nil {
		return
	}
	setSpanResult(span, o.state, o.reason)
	span.End()
}

// outcomes sets the result of the pass to the result of its worst step.
func (t passTracer) outcomes(ctx context.Context, outcomes []outcome) {
	if t.Tracer == nil {
		return
	}
	worst := slices.MaxFunc(outcomes, func(a, b outcome) int { return cmp.Compare(a.state, b.state) })
	setSpanResult(trace.SpanFromContext(ctx), worst.state, worst.reason)
}

// result sets the result of a pass whose steps have no outcomes.
func (t passTracer) result(ctx context.Context, result string) {
	if t.Tracer != nil {
		trace.SpanFromContext(ctx).SetAttributes(attributeResult.String(result))
	}
}

// setSpanResult sets the result of a step or a pass. Only a failed or stalled step is an error.
func setSpanResult(span trace.Span, result state, reason string) {
	span.SetAttributes(attributeResult.String(result.ending().label), attributeReason.String(reason))
	if result.ending().isFault {
		span.SetStatus(codes.Error, reason)
	}
}
