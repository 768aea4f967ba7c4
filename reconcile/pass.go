package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/pause"
)

// pass is one run over one object.
type pass[T client.Object] struct {
	*Reconciler[T]
	name   types.NamespacedName
	before T // as it is on the API server; perhaps the cache's own
	obj    T // what the steps work on
	next   delays
	locked bool // a checkpoint failed: what it was to write must not get there without its lock

	written  bool // metadata, with a lock
	outdated bool // before is, as a checkpoint found

	running int // the step
	left    []left
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
		p.next.fail(err)
		return ctrl.Result{RequeueAfter: p.delay()}
	}
	p.before = p.writes.Newer(cached).(T)
	if p.isCleaned() {
		return ctrl.Result{}
	}
	if p.ours != nil && !p.ours(p.before) {
		p.forget()
		return ctrl.Result{}
	}
	p.obj = p.copyOf(p.before)
	p.obj.GetObjectKind().SetGroupVersionKind(p.kind)
	ctx = passcontext.NewContext(ctx, p)

	if p.before.GetDeletionTimestamp() != nil {
		return p.finalize(ctx)
	}
	if state := pause.Of(p.before); state.Paused {
		if now := p.clock.Now(); state.At(now).Paused {
			return p.pause(ctx, state, now)
		}
	}
	if o, ok := p.ensureFinalizers(ctx); !ok {
		return p.finish(ctx, []outcome{o})
	}
	return p.finish(ctx, p.runSteps(ctx))
}

// copyOf gives what the steps work on: a copy of all but the managed fields, which would be a
// third of the work and which no step needs.
func (r *Reconciler[T]) copyOf(obj T) T {
	lean := r.empty()
	reflect.ValueOf(lean).Elem().Set(reflect.ValueOf(obj).Elem())
	lean.SetManagedFields(nil)
	return lean.DeepCopyObject().(T)
}

// rebase goes on from a write of ours to the object's metadata, whose answer is in obj. Nobody
// wrote in between: the write had a lock. Steps may change what they have of it in memory.
func (p *pass[T]) rebase() {
	before := p.copyOf(p.before)
	p.written = p.written || p.obj.GetResourceVersion() != before.GetResourceVersion()
	before.SetResourceVersion(p.obj.GetResourceVersion())
	before.SetFinalizers(slices.Clone(p.obj.GetFinalizers()))
	before.SetAnnotations(maps.Clone(p.obj.GetAnnotations()))
	before.SetLabels(maps.Clone(p.obj.GetLabels()))
	before.SetOwnerReferences(slices.Clone(p.obj.GetOwnerReferences()))
	p.before = before
	p.writes.Record(before)
}

// forget is for an object that is gone.
func (p *pass[T]) forget() {
	p.writes.Forget(p.empty(), p.name)
	p.backoff.forget(p.name)
	p.metrics.forget(p.name)
	p.cleaned.Delete(p.name)
	p.confirmed.Delete(p.name)
	p.logged.forget(p.name, noStepName)
	for i := range p.steps {
		p.logged.forget(p.name, p.steps[i].name)
	}
}

// runSteps runs the steps in order.
func (p *pass[T]) runSteps(ctx context.Context) []outcome {
	outcomes := make([]outcome, len(p.steps))
	halted := noStep
	for i := range p.steps {
		if halted != noStep {
			outcomes[i] = outcome{step: i, state: skipped, reason: reasonSkipped, message: fmt.Sprintf("step %q halted the pass", p.steps[halted].name)}
			continue
		}
		if outcomes[i] = p.call(ctx, i, p.steps[i].step.Reconcile); outcomes[i].halts {
			halted = i
		}
	}
	p.afterSteps(ctx, outcomes)
	return outcomes
}

// call runs a step. A panic, also one of its error's methods, is its failure.
func (p *pass[T]) call(ctx context.Context, step int, do StepFunc[T]) (o outcome) {
	p.running = step
	name := p.steps[step].name
	defer p.metrics.step(name, time.Now(), &o)
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Info("Step panicked", "step", name, "panic", r, "stack", string(debug.Stack()))
			o = outcomeOf(fmt.Errorf("step %q panicked; the log has the stack", name))
		}
		o.step = step
	}()
	return outcomeOf(do(ctx, p.stepClient, p.obj))
}

// lateTime is what a status write may take that comes after the pass's own time.
const lateTime = 10 * time.Second

// finish notes and shows the outcomes, and writes the status.
func (p *pass[T]) finish(ctx context.Context, outcomes []outcome) ctrl.Result {
	if errors.Is(ctx.Err(), context.Canceled) { // the operator ends: no step has failed, and nothing can be written
		return ctrl.Result{}
	}
	if ctx.Err() != nil { // the pass took all the time it has, and that has to be shown
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lateTime)
		defer cancel()
	}
	seen := true
	for i := range outcomes {
		o := &outcomes[i]
		if o.state == conflicted && p.backoff.tries(p.name) >= quietConflicts {
			o.state = failed // it is no race: somebody has to know
		}
		p.note(ctx, o)
		seen = seen && o.state != conflicted && !o.unshown
	}
	if err := p.show(outcomes); err != nil {
		log.FromContext(ctx).Error(err, "Cannot set a condition")
		p.next.failed = true
	}
	p.save(ctx, seen)
	return ctrl.Result{RequeueAfter: p.delay()}
}
