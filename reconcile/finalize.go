package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
	"github.com/opblocks/opblocks/internal/record"
)

// ensureFinalizers adds missing finalizers before any step can create something outside of the cluster. It also
// replaces finalizers with former names. If that fails, ok is false, and no step may run. o is then the outcome of the
// pass.
func (p *pass) ensureFinalizers(ctx context.Context) (o outcome, ok bool) {
	if len(p.engine.finalizers) == 0 {
		return outcome{}, true
	}
	added, err := finalizers.Replace(ctx, p.engine.client, p.object.obj, p.engine.formerFinalizers, p.engine.finalizers...)
	if added {
		p.object.obj.SetManagedFields(nil) // the answer has managed fields, and steps get an object without them
		p.object.rebase()
	}
	if err == nil {
		p.engine.memory.clearWarning(p.object.name, finalizerStep.name)
		return outcome{}, true
	}
	o = classify(err)
	o.step = finalizerStep
	if apierrors.IsNotFound(err) { // the object was deleted, and the cache still has it
		o.state = conflicted
	}
	return o, false
}

// finalize runs the cleanups of an object that is being deleted, beginning with the last step. If a cleanup does
// not succeed, the conditions show it, and the cleanups of earlier steps do not run.
func (p *pass) finalize(ctx context.Context) ctrl.Result {
	removed := false
	if !p.object.isCleanedUp() {
		for i, step := range slices.Backward(p.engine.passSteps) {
			for _, name := range step.finalizerNames() {
				if !slices.Contains(p.object.obj.GetFinalizers(), name) {
					continue
				}
				o := p.call(ctx, spanFinalize, i, p.cleanup(&step, name))
				if o.state != succeeded {
					return p.finish(ctx, []outcome{o})
				}
				p.object.rebase()
				removed = true
			}
		}
	}
	// Other operators may still have finalizers on the object. If there is a next pass, it reads the object again.
	left := p.object.abandonedFinalizers()
	if len(left) == 0 {
		p.engine.forget(p.object.name)
	}
	if removed {
		p.engine.memory.setCleanedUp(p.object.name, p.object.before.GetUID())
	}
	if len(left) > 0 {
		return p.reportAbandoned(ctx, left)
	}
	p.engine.tracer.result(ctx, resultFinalized)
	p.reportEnd(ctx, nil)
	return ctrl.Result{}
}

const (
	// reasonUnknownFinalizer is the reason if an object that is being deleted has the finalizer of a set of children, and no
	// step has this finalizer.
	reasonUnknownFinalizer = "UnknownFinalizer"
	// unknownFinalizerDelay is the time between the deletion and the report of such a finalizer. In this time another
	// reconciler of the kind may remove the finalizer.
	unknownFinalizerDelay = time.Minute
)

// abandonedFinalizers returns the sets of children for which the object has a finalizer that no step has. It returns
// their names, sorted.
func (o *passObject) abandonedFinalizers() (sets []string) {
	for _, finalizer := range o.before.GetFinalizers() {
		set, ok := record.SetOf(finalizer)
		if ok && !slices.Contains(o.engine.finalizers, finalizer) && !slices.Contains(o.engine.formerFinalizers, finalizer) {
			sets = append(sets, set)
		}
	}
	slices.Sort(sets)
	return sets
}

// reportAbandoned shows in the conditions that the object has finalizers which no step removes. It does not remove
// them, because another operator may need them.
func (p *pass) reportAbandoned(ctx context.Context, sets []string) ctrl.Result {
	if wait := unknownFinalizerDelay - p.engine.clock.Since(p.object.before.GetDeletionTimestamp().Time); wait > 0 {
		p.retry = retry{after: wait}
		p.engine.tracer.result(ctx, resultFinalized)
		return p.end()
	}
	var messages []string
	for _, set := range sets {
		messages = append(messages, fmt.Sprintf("the finalizer %q is that of a step %q, and no step of this operator has it: "+
			"if a step was renamed, give the step its FormerNames(%q); if the step or its options were removed, add them again, and let its children return nil; "+
			"if it is a step of another operator, that one has to remove it", record.Finalizer(set), set, set))
	}
	return p.finish(ctx, []outcome{{
		step: finalizerStep, state: stalled, reason: reasonUnknownFinalizer, message: strings.Join(messages, "; "),
	}})
}

// isCleanedUp reports whether the cleanup of the object has finished. The cache may be behind and still have the object,
// even without its deletion timestamp. A step would then create things again that nobody would clean up.
func (o *passObject) isCleanedUp() bool {
	return len(o.engine.finalizers) > 0 && o.engine.memory.isCleanedUp(o.name, o.before.GetUID())
}

// cleanup returns the function that runs the cleanup of a step and removes one of its finalizers.
func (p *pass) cleanup(step *passStep, finalizer string) action {
	return func(ctx context.Context, c client.Client, obj client.Object) error {
		cleanup := func(ctx context.Context) error {
			if err := step.finalize(ctx, c, obj); classify(err).state != succeeded { // Halt(nil) and Success are also successes
				return err
			}
			return p.runAtEnd(ctx, p.running)
		}
		_, err := finalizers.Finalize(ctx, p.engine.client, obj, finalizers.Finalizer{
			Name: finalizer, Cleanup: cleanup, GiveUpAfter: step.giveUpAfter, Recorder: p.engine.recorder, Now: p.engine.clock.Now,
		})
		return err
	}
}
