package reconcile

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/pause"
)

// PausedAnnotation pauses an object: no step runs, whatever brings the pass, until the annotation
// goes. Its value is "true", or the time until when it holds, as RFC 3339. "false" is the same as
// no annotation; any other value pauses, too. The condition Paused says so. A pause does not stop a deletion.
const PausedAnnotation = pause.Annotation

// pause shows the pause, and does nothing else.
func (p *pass[T]) pause(ctx context.Context, state pause.State, now time.Time) ctrl.Result {
	message := "nothing is done until the annotation " + PausedAnnotation + " is removed"
	if !state.Until.IsZero() {
		message = "nothing is done until " + state.Until.Format(time.RFC3339) + " or until the annotation " + PausedAnnotation + " is removed"
		p.next.wait(state.Until.Sub(now))
	}
	list, err := p.list(p.obj)
	if err == nil && list != nil {
		_, _, err = list.Set(metav1.Condition{
			Type: conditions.Paused, Status: metav1.ConditionTrue, Reason: conditions.Paused, Message: message,
			ObservedGeneration: p.obj.GetGeneration(),
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Cannot set a condition")
	}
	p.save(ctx, true)
	return ctrl.Result{RequeueAfter: p.delay()}
}
