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

// ensureFinalizers adds what is missing, before any step can act outside. Without one it gives
// an outcome, and no step may run.
func (p *pass[T]) ensureFinalizers(ctx context.Context) (o outcome, ok bool) {
	if len(p.finalizers) == 0 {
		return outcome{}, true
	}
	added, err := finalizers.Ensure(ctx, p.client, p.obj, p.finalizers...)
	if added {
		p.obj.SetManagedFields(nil) // which no step gets
		p.rebase()
	}
	if err == nil {
		p.logged.forget(p.name, noStepName)
		return outcome{}, true
	}
	o = outcomeOf(err)
	o.step = noStep
	if apierrors.IsNotFound(err) { // it was deleted meanwhile, and the cache is about to hear of it
		o.state = conflicted
	}
	return o, false
}

// finalize runs the cleanup of an object that is being deleted, the last step's first. What
// cannot finish yet keeps those before it from running, and is shown.
func (p *pass[T]) finalize(ctx context.Context) ctrl.Result {
	uid := p.before.GetUID()
	cleaned := false
	for i, step := range slices.Backward(p.steps) {
		if step.cleaner == nil || !slices.Contains(p.obj.GetFinalizers(), step.finalizer) {
			continue
		}
		o := p.call(ctx, i, p.cleanup(&step))
		if o.state != succeeded {
			return p.finish(ctx, []outcome{o})
		}
		p.rebase()
		cleaned = true
	}
	// Others' finalizers may be left. The next pass, if there is one, reads what it needs anew.
	p.forget()
	if cleaned {
		p.cleaned.Store(p.name, uid)
	}
	return ctrl.Result{}
}

// isCleaned says that the cleanup is done and the cache is behind. It may even show the object as it
// was before its deletion: a step would make again what nobody would clean up any more.
func (p *pass[T]) isCleaned() bool {
	if len(p.finalizers) == 0 {
		return false
	}
	uid := p.before.GetUID()
	done, _ := p.cleaned.Load(p.name)
	return done == uid && uid != ""
}

func (p *pass[T]) cleanup(step *NamedStep[T]) StepFunc[T] {
	return func(ctx context.Context, c client.Client, obj T) error {
		options := []finalizers.Option{finalizers.WithClock(p.clock.Now)}
		if step.giveUpAfter > 0 {
			options = append(options, finalizers.GiveUpAfter(step.giveUpAfter, p.recorder))
		}
		_, err := finalizers.Finalize(ctx, p.client, obj, step.finalizer, func(ctx context.Context) error {
			if err := step.cleaner.Finalize(ctx, c, obj); outcomeOf(err).state != succeeded { // which Halt(nil) and Done are too
				return err
			}
			return p.doLeft(ctx, p.running)
		}, options...)
		return err
	}
}

// finalizerError says what is wrong with a name; "" is none.
func finalizerError(name string) error {
	if name == "" {
		return nil
	}
	_, err := finalizers.Remove(context.Background(), nil, &metav1.PartialObjectMetadata{}, name) // there is nothing to remove, so no request
	return err
}
