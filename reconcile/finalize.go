package reconcile

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/finalizers"
)

// finalizerStep stands for the pass itself, which adds the finalizers of all steps.
var finalizerStep = &stepOptions{name: "finalizer"}

// ensureFinalizers adds missing finalizers, before any step can act outside of the cluster. If that fails, ok is false, o is
// the outcome of the pass, and no step may run.
func (p *pass[T]) ensureFinalizers(ctx context.Context) (o outcome, ok bool) {
	if len(p.finalizers) == 0 {
		return outcome{}, true
	}
	added, err := finalizers.Ensure(ctx, p.client, p.obj, p.finalizers...)
	if added {
		p.obj.SetManagedFields(nil) // which the answer has: steps get an object without them
		p.rebase()
	}
	if err == nil {
		p.memory.clearWarning(p.name, finalizerStep.name)
		return outcome{}, true
	}
	o = classify(err)
	o.step = finalizerStep
	if apierrors.IsNotFound(err) { // the object was deleted, which the cache does not show yet
		o.state = conflicted
	}
	return o, false
}

// finalize runs the cleanup of an object that is being deleted, for the last step first. A cleanup that has not finished
// keeps those of earlier steps from running, and the conditions show it.
func (p *pass[T]) finalize(ctx context.Context) ctrl.Result {
	uid := p.before.GetUID()
	removed := false
	for i, step := range slices.Backward(p.steps) {
		if step.finalizing == nil || !slices.Contains(p.obj.GetFinalizers(), step.finalizer) {
			continue
		}
		o := p.call(ctx, spanFinalize, i, p.cleanup(&step))
		if o.state != succeeded {
			return p.finish(ctx, []outcome{o})
		}
		p.rebase()
		removed = true
	}
	// The finalizers of others may be left. The next pass, if there is one, reads what it needs.
	p.forget(p.name)
	if removed {
		p.memory.setCleanedUp(p.name, uid)
	}
	p.traceResult(ctx, resultFinalized)
	return ctrl.Result{}
}

// isCleanedUp reports whether the cleanup has finished and the cache is behind. The cache may even show the object as it was
// before its deletion: then a step would create again what nobody would clean up any more.
func (p *pass[T]) isCleanedUp() bool {
	return len(p.finalizers) > 0 && p.memory.isCleanedUp(p.name, p.before.GetUID())
}

// cleanup returns the function that runs the cleanup of a step and removes its finalizer.
func (p *pass[T]) cleanup(step *NamedStep[T]) StepFunc[T] {
	return func(ctx context.Context, c client.Client, obj T) error {
		options := []finalizers.Option{finalizers.WithClock(p.clock.Now)}
		if step.giveUpAfter > 0 {
			options = append(options, finalizers.GiveUpAfter(step.giveUpAfter, p.recorder))
		}
		_, err := finalizers.Finalize(ctx, p.client, obj, step.finalizer, func(ctx context.Context) error {
			if err := step.finalizing.Finalize(ctx, c, obj); classify(err).state != succeeded { // Halt(nil) and Success are successes too
				return err
			}
			return p.runAtEnd(ctx, p.running)
		}, options...)
		return err
	}
}

// validateFinalizer returns what is wrong with the name of a finalizer. An empty name means that there is none.
func validateFinalizer(name string) error {
	if name == "" {
		return nil
	}
	// Remove validates the name. It sends no request, since the object has no finalizers.
	_, err := finalizers.Remove(context.Background(), nil, &metav1.PartialObjectMetadata{}, name)
	return err
}
