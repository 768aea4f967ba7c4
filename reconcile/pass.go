package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/internal/turns"
)

// PausedAnnotation is the annotation that pauses an object: no step runs, whatever triggers the pass, and the condition
// Paused is True. Its value is "true", or the time when the pause ends, in the format of RFC 3339. "false" means the same as
// no annotation. Any other value, also an empty one, pauses without an end. A pause does not stop the cleanup of an object
// that is being deleted.
const PausedAnnotation = record.Paused

// pass is one reconcile of one object, with everything that is known during it.
type pass struct {
	engine  *engine
	object  passObject
	handle  handle // gives functions access to the pass through the context
	running int    // the index of the step that runs
	turn    turns.Turn
	worst   state // the worst outcome of a step; failed if the pass itself has failed
	retry   retry
	asked   asked             // the request of a person, by RequestedAnnotation
	settled int               // how many steps, from the first on, are left out because they would find nothing to do
	notes   []note            // conditions that steps have set by SetCondition
	atEnd   []atEnd           // functions that steps have registered by AfterSteps
	kept    map[string]string // by annotation: the name of the step that has called KeepAnnotation for it
	mistake error             // a mistake in the kind or the client, so no status can be written
}

// atEnd is a function that a step has registered to run at the end of the pass.
type atEnd struct {
	step int
	do   func(ctx context.Context) error
}

// note is a condition that a step has set by SetCondition.
type note struct {
	step      *stepOptions
	condition metav1.Condition
}

// withoutCopy makes Get return an object that shares memory with the cache. The caller must not change the object.
var withoutCopy = &client.GetOptions{UnsafeDisableDeepCopy: new(true)}

func (p *pass) run(ctx context.Context) ctrl.Result {
	cached := p.engine.receivers.Get().(client.Object)
	unseen := p.engine.writes.Unseen(cached, p.object.name)
	switch err := p.engine.client.Get(ctx, p.object.name, cached, withoutCopy); {
	case err == nil:
	case apierrors.IsNotFound(err):
		p.engine.forget(p.object.name)
		if report := passcontext.PassEnds(ctx); report != nil {
			report(passcontext.PassEnd{Kind: p.engine.kind, Gone: true})
		}
		p.engine.tracer.result(ctx, resultGone)
		return ctrl.Result{}
	default:
		log.FromContext(ctx).Error(err, "Cannot read the object")
		p.engine.tracer.outcomes(ctx, []outcome{{state: failed, reason: reasonFailed}})
		p.worst = failed
		p.retry = p.retry.merge(retryFailure(err))
		return p.end()
	}
	p.object.before = p.engine.writes.Newer(unseen, cached)
	if p.object.isCleanedUp() && (p.object.before.GetDeletionTimestamp() == nil || len(p.object.abandonedFinalizers()) == 0) {
		p.engine.tracer.result(ctx, resultGone)
		return ctrl.Result{}
	}
	if p.engine.filter != nil && !p.engine.filter(p.object.before) {
		p.engine.forget(p.object.name)
		p.engine.tracer.result(ctx, resultFiltered)
		p.reportEnd(ctx, nil)
		return ctrl.Result{}
	}
	requested := p.readRequest()
	if p.object.before == cached {
		p.object.cached = cached.GetResourceVersion()
		if !requested {
			p.settled = p.settledSteps(ctx)
		}
		if p.settled == len(p.engine.passSteps) && p.engine.memory.isQuiet(p.object.name, versionOf(p.object.before)) {
			p.engine.release(cached)
			p.engine.tracer.result(ctx, resultUnchanged)
			return p.end()
		}
	}
	p.object.obj = p.engine.copyOf(p.object.before)
	p.object.obj.GetObjectKind().SetGroupVersionKind(p.engine.kind)
	ctx = passcontext.NewContext(ctx, &p.handle)

	if p.object.before.GetDeletionTimestamp() != nil {
		return p.finalize(ctx)
	}
	if state := record.PauseOf(p.object.before); state.Paused {
		if now := p.engine.clock.Now(); state.At(now).Paused {
			return p.pause(ctx, state, now)
		}
	}
	if o, ok := p.ensureFinalizers(ctx); !ok {
		return p.finish(ctx, []outcome{o})
	}
	return p.finish(ctx, p.runSteps(ctx))
}

// settledSteps returns how many steps, from the first on, would find nothing to do. It stops at the first step that
// has to run: that step may change the object in memory, so the steps after it have to run too.
func (p *pass) settledSteps(ctx context.Context) (count int) {
	if p.engine.settlers == 0 || !p.object.mayLeaveOutSteps() {
		return 0
	}
	for i := range p.engine.settlers {
		if !p.engine.passSteps[i].hooks.Settled(ctx, p.engine.stepClient, p.object.before) {
			return i
		}
	}
	return p.engine.settlers
}

// versionOf returns the version of an object as [memory] stores it.
func versionOf(obj client.Object) quietVersion {
	return quietVersion{obj.GetUID(), obj.GetResourceVersion()}
}

// pause sets the condition Paused and does nothing else.
func (p *pass) pause(ctx context.Context, state record.Pause, now time.Time) ctrl.Result {
	message := "nothing is done until the annotation " + PausedAnnotation + " is removed"
	if !state.Until.IsZero() {
		message = "nothing is done until " + state.Until.Format(time.RFC3339) + " or until the annotation " + PausedAnnotation + " is removed"
		p.retry = retry{after: state.Until.Sub(now)}
	}
	list, err := p.engine.status.Conditions(p.object.obj)
	if err == nil && list != nil {
		_, _, err = list.Set(metav1.Condition{
			Type: conditions.Paused, Status: metav1.ConditionTrue, Reason: conditions.Paused, Message: message,
			ObservedGeneration: p.object.obj.GetGeneration(),
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot set a condition")
	}
	p.saveStatus(ctx, true)
	p.engine.tracer.result(ctx, resultPaused)
	p.reportEnd(ctx, nil)
	return p.end()
}

// runSteps runs the steps in order.
func (p *pass) runSteps(ctx context.Context) []outcome {
	outcomes := make([]outcome, len(p.engine.passSteps))
	haltedBy := ""
	for i := range p.engine.passSteps {
		if i < p.settled {
			outcomes[i] = classify(nil)
			outcomes[i].step = p.engine.passSteps[i].stepOptions
			continue
		}
		if haltedBy != "" {
			outcomes[i] = outcome{
				step: p.engine.passSteps[i].stepOptions, state: skipped, reason: reasonSkipped, message: fmt.Sprintf("step %q halted the pass", haltedBy),
			}
			continue
		}
		if outcomes[i] = p.call(ctx, spanStep, i, p.engine.passSteps[i].reconcile); outcomes[i].halts {
			haltedBy = p.engine.passSteps[i].name
		}
	}
	p.runAfterSteps(ctx, outcomes)
	return outcomes
}

// call runs a step. If the step panics, or a method of its error panics, the step has failed.
func (p *pass) call(ctx context.Context, verb string, step int, do action) (o outcome) {
	p.running = step
	name := p.engine.passSteps[step].name
	defer p.engine.metrics.step(name, time.Now(), &o)
	ctx, span := p.engine.tracer.start(ctx, verb, name)
	defer endSpan(span, &o)
	defer func() {
		if r := recover(); r != nil {
			log.FromContext(ctx).Info("Step panicked", "step", name, "panic", r, "stack", string(debug.Stack()))
			o = classify(fmt.Errorf("step %q panicked; the log has the stack", name))
			o.panicked = r
		}
		o.step = p.engine.passSteps[step].stepOptions
	}()
	err := do(ctx, p.engine.stepClient, p.object.obj)
	o = classify(err)
	o.yields = o.state == waiting && errors.Is(err, passcontext.ErrTurnOver)
	return o
}

// runAfterSteps runs the functions that the steps have registered by AfterSteps, if each step succeeded or waits. If
// such a function does not succeed, its outcome replaces the outcome of the step.
func (p *pass) runAfterSteps(ctx context.Context, outcomes []outcome) {
	for i := range outcomes {
		if !outcomes[i].state.ending().isDone {
			return
		}
	}
	for i := range outcomes {
		if !slices.ContainsFunc(p.atEnd, func(a atEnd) bool { return a.step == i }) {
			continue
		}
		o := p.call(ctx, spanAfterSteps, i, func(ctx context.Context, _ client.Client, _ client.Object) error { return p.runAtEnd(ctx, i) })
		if o.state != succeeded {
			outcomes[i] = o
		}
	}
}

// runAtEnd runs the functions that one step has registered. If such a function registers further functions, they run
// too. runAtEnd returns all their errors.
func (p *pass) runAtEnd(ctx context.Context, step int) error {
	var errs []error
	for i := 0; i < len(p.atEnd); i++ {
		if p.atEnd[i].step == step {
			errs = append(errs, p.atEnd[i].do(ctx))
		}
	}
	return errors.Join(errs...)
}

// lateWriteTimeout limits the status write of a pass whose deadline has passed.
const lateWriteTimeout = 10 * time.Second

// finish logs the outcomes and emits their events, sets the conditions and writes the status.
func (p *pass) finish(ctx context.Context, outcomes []outcome) ctrl.Result {
	if errors.Is(ctx.Err(), context.Canceled) { // the operator stops: the step has not failed, and nothing can be written
		return ctrl.Result{}
	}
	if ctx.Err() != nil { // the deadline of the pass has passed, and the conditions have to show that
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lateWriteTimeout)
		defer cancel()
	}
	next := attempt{name: p.object.name, failures: p.engine.memory.failures(p.object.name), soon: p.retriesForbiddenSoon(outcomes)}
	keepWhileYielding(outcomes, func() bool {
		list, _ := p.engine.status.Conditions(p.object.obj) // setConditions returns the same error
		observed, has := p.engine.status.ObservedGeneration(p.object.before)
		return turns.IsShown(list, p.object.obj.GetGeneration(), !has || observed == p.object.obj.GetGeneration())
	})
	observed, quiet, version := true, true, versionOf(p.object.before)
	for i := range outcomes {
		o := &outcomes[i]
		if isLastingConflict(o, next.failures) {
			o.state = failed // a conflict that lasts has to be shown
		}
		p.report(ctx, o)
		p.worst = max(p.worst, o.state)
		p.retry = p.retry.merge(p.engine.retries.of(o, next))
		observed = observed && o.setsConditions()
		quiet = quiet && o.state == succeeded && o.err == nil
	}
	p.engine.tracer.outcomes(ctx, outcomes)
	p.reportEnd(ctx, outcomes)
	if err := p.setConditions(outcomes); err != nil {
		log.FromContext(ctx).Error(err, "Cannot set a condition")
		p.retry, p.worst = p.retry.merge(retryFailure(err)), max(p.worst, failed)
	}
	p.answer(outcomes)
	if observed && p.asked.value != "" {
		p.engine.status.SetHandled(p.object.obj, p.asked.value)
	}
	p.saveStatus(ctx, observed)
	if !quiet || p.retry != (retry{}) || versionOf(p.object.before) != version {
		version = quietVersion{}
	}
	p.engine.memory.setQuiet(p.object.name, version)
	return p.end()
}

// retriesForbiddenSoon reports whether a forbidden request is retried soon: within [soonForbidden] after the first of the
// refusals in a row, and always while the object is being deleted. A deletion often waits for a permission that was removed
// too early, and the API server sends no event when somebody restores the permission.
func (p *pass) retriesForbiddenSoon(outcomes []outcome) bool {
	if !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.forbidden }) {
		p.engine.memory.clearRefused(p.object.name)
		return false
	}
	now := p.engine.clock.Now()
	first := p.engine.memory.setRefused(p.object.name, now)
	return p.object.before.GetDeletionTimestamp() != nil || now.Sub(first) < soonForbidden
}

// end ends a pass. It counts a failure, or resets the number of failures. It returns when the next pass is due.
func (p *pass) end() ctrl.Result {
	if p.mistake == nil { // with a mistake, the pass returns an error, which controller-runtime counts
		p.engine.metrics.pass(p.worst)
	}
	switch {
	case p.retry.backoff:
		failures := p.engine.memory.failures(p.object.name)
		p.engine.memory.addFailure(p.object.name)
		p.retry.after = earlier(p.retry.after, jitter(p.engine.retries.backoff(failures), p.object.name, failures))
	case !p.retry.keepFailures:
		p.engine.memory.resetFailures(p.object.name)
	}
	result := ctrl.Result{RequeueAfter: p.retry.delay()}
	if p.retry.lowPriority && !p.retry.backoff {
		result.Priority = new(handler.LowPriority)
	}
	return result
}
