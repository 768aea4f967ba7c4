package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// pass is one run over one object.
type pass[T client.Object] struct {
	*Reconciler[T]
	name types.NamespacedName
	next delays
}

var withoutCopy = &client.GetOptions{UnsafeDisableDeepCopy: new(true)}

func (p *pass[T]) run(ctx context.Context) ctrl.Result {
	cached := p.empty()
	err := p.client.Get(ctx, p.name, cached, withoutCopy)
	switch {
	case err == nil:
	case apierrors.IsNotFound(err):
		p.forget()
		return ctrl.Result{}
	default:
		log.FromContext(ctx).Error(err, "Cannot read the object")
		return ctrl.Result{RequeueAfter: p.backoff.next(p.name)}
	}
	before := p.writes.Newer(cached).(T)
	if before.GetDeletionTimestamp() != nil {
		p.forget()
		return ctrl.Result{}
	}
	obj := p.copyOf(before)
	obj.GetObjectKind().SetGroupVersionKind(p.kind)

	outcomes := p.runSteps(ctx, obj)
	if err := p.show(obj, outcomes); err != nil {
		log.FromContext(ctx).Error(err, "Cannot set a condition")
		p.next.failed = true
	}
	p.status.finish(before, obj, !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.state == conflicted }))
	p.status.keepTransitions(before, obj)
	p.save(ctx, before, obj)
	return ctrl.Result{RequeueAfter: p.delay()}
}

// copyOf gives what the steps work on: a copy of all but the managed fields, which would be a
// third of the work and which no step needs.
func (r *Reconciler[T]) copyOf(obj T) T {
	lean := r.empty()
	reflect.ValueOf(lean).Elem().Set(reflect.ValueOf(obj).Elem())
	lean.SetManagedFields(nil)
	return lean.DeepCopyObject().(T)
}

func (p *pass[T]) forget() {
	p.writes.Forget(p.empty(), p.name)
	p.backoff.forget(p.name)
	for i := range p.steps {
		p.logged.forget(p.name, p.steps[i].name)
	}
}

// runSteps runs the steps in order.
func (p *pass[T]) runSteps(ctx context.Context, obj T) []outcome {
	outcomes := make([]outcome, len(p.steps))
	halted := -1
	for i := range p.steps {
		step := &p.steps[i]
		if halted >= 0 {
			outcomes[i] = outcome{state: skipped, reason: reasonSkipped, message: fmt.Sprintf("step %q halted the pass", p.steps[halted].name)}
			continue
		}
		do := step.step.Reconcile
		if step.pruner != nil {
			do = step.pruner.Apply
		}
		outcomes[i] = p.call(ctx, step, obj, do)
		if outcomes[i].halts {
			halted = i
		}
	}
	p.prune(ctx, obj, outcomes)
	for i := range p.steps {
		o := &outcomes[i]
		if o.state == conflicted && p.backoff.limiter.NumRequeues(p.name) >= quietConflicts {
			o.state, o.reason = failed, reasonConflict // it is no race: somebody has to know
		}
		if o.state != skipped {
			p.note(ctx, &p.steps[i], *o)
		}
	}
	return outcomes
}

// prune lets steps delete once all of them have applied.
func (p *pass[T]) prune(ctx context.Context, obj T, outcomes []outcome) {
	for _, o := range outcomes {
		if o.state != succeeded && o.state != waiting {
			return
		}
	}
	for i := range p.steps {
		step := &p.steps[i]
		if step.pruner == nil {
			continue
		}
		if o := p.call(ctx, step, obj, step.pruner.Prune); o.state != succeeded {
			outcomes[i] = o
		}
	}
}

// call runs a step. A panic, also one of its error's methods, is its failure.
func (p *pass[T]) call(ctx context.Context, step *NamedStep[T], obj T, do StepFunc[T]) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Info("Step panicked", "step", step.name, "panic", r, "stack", string(debug.Stack()))
			o = outcomeOf(fmt.Errorf("step %q panicked; the log has the stack", step.name))
		}
	}()
	return outcomeOf(do(ctx, p.stepClient, obj))
}

// note logs an outcome, and takes what it says about the next pass.
func (p *pass[T]) note(ctx context.Context, step *NamedStep[T], o outcome) {
	if o.state == succeeded {
		p.logged.forget(p.name, step.name)
		return
	}
	logger := log.FromContext(ctx).WithValues("step", step.name)
	p.next.wait(o.after)
	p.next.failed = p.next.failed || o.retries
	switch o.state {
	case waiting:
		logger.V(1).Info("Step waits", "reason", o.reason, "message", o.message)
	case conflicted:
		logger.V(1).Info("Step lost a race and is tried again", "conflict", o.message)
	case failed:
		if p.logged.isNew(p.name, step.name, o.message) {
			logger.Error(o.err, "Step failed")
		}
	case terminal:
		p.next.wait(wait.Jitter(terminalRetry, jitter))
		if p.logged.isNew(p.name, step.name, o.message) {
			logger.Error(o.err, "Step cannot succeed until something changes")
		}
	case succeeded, skipped:
	}
}

// save writes the status if it differs from the one read.
func (p *pass[T]) save(ctx context.Context, before, after T) {
	if p.status.equal(before, after) {
		return
	}
	logger := log.FromContext(ctx)
	data, err := p.status.patch(before, after)
	if err != nil {
		logger.Error(err, "Cannot write the status")
		p.next.failed = true
		return
	}
	answer := p.empty()
	answer.SetNamespace(p.name.Namespace)
	answer.SetName(p.name.Name)
	err = p.client.Status().Patch(ctx, answer, statusPatch(data), p.fieldManager)
	switch {
	case err == nil:
		p.writes.Record(answer)
	case apierrors.IsNotFound(err) && !p.exists(ctx):
		p.forget()
	case apierrors.IsNotFound(err):
		p.next.failed = true
		logger.Error(err, "The kind has no status subresource: add the marker +kubebuilder:subresource:status to its type, in a test WithStatusSubresource to the fake client")
	case apierrors.IsConflict(err):
		p.next.failed = true
		logger.V(1).Info("Status was written by somebody else meanwhile; trying again", "conflict", err.Error())
	default:
		p.next.failed = true
		logger.Error(err, "Cannot write the status")
	}
}

// exists asks the API server past the cache, which may not have heard of the deletion.
func (p *pass[T]) exists(ctx context.Context) bool {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(p.kind)
	return p.client.Get(ctx, p.name, u) == nil
}

// delays gathers when the next pass is due.
type delays struct {
	after  time.Duration // 0: no wait
	failed bool
}

func (d *delays) wait(after time.Duration) {
	if after > 0 && (d.after == 0 || after < d.after) {
		d.after = after
	}
}

// delay is the shortest of all waits and the backoff; 0 if only an event brings the next pass.
func (p *pass[T]) delay() time.Duration {
	if p.next.failed {
		p.next.wait(p.backoff.next(p.name))
	} else {
		p.backoff.forget(p.name)
	}
	return p.next.after
}
