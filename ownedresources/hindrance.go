package ownedresources

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reasons of a [Hindrance].
const (
	// HindranceAlreadyRestarted: the pods were told to be replaced at a later time.
	HindranceAlreadyRestarted = "AlreadyRestarted"
	// HindrancePaused: a Deployment is paused, and so would not replace its pods before that ends.
	HindrancePaused = "DeploymentPaused"
	// HindranceRolloutInProgress: it is replacing its pods, for whatever reason.
	HindranceRolloutInProgress = "RolloutInProgress"
	// HindranceNotObserved: its controller has not seen its last change yet, which may be no more than an annotation. That
	// is over in a moment, and an event of it tells: wait and ask again rather than leave the restart out.
	HindranceNotObserved = "NotObserved"
)

// Hindrance is why a restart at a time should be left out, or wait. The zero value is none.
type Hindrance struct{ Reason, Message string }

// HindranceOf looks for what is in the way of a [Restart] of a Deployment, StatefulSet or DaemonSet at a time. That very
// restart is not: if it has been sent already, as before a crash, Restart does nothing, and its rollout is to be watched.
func HindranceOf(workload client.Object, at time.Time, scheme *runtime.Scheme) (Hindrance, error) {
	template, err := templateOf(workload)
	if err != nil {
		return Hindrance{}, err
	}
	at = at.Truncate(time.Second)
	last, ever := restartedAt(template)
	rollout, err := RolloutOf(workload, scheme)
	switch {
	case err != nil || ever && last.Equal(at):
		return Hindrance{}, err
	case ever && last.After(at):
		return Hindrance{HindranceAlreadyRestarted, "it was restarted already, at " + last.UTC().Format(time.RFC3339)}, nil
	case isPaused(workload):
		return Hindrance{HindrancePaused, "it is paused"}, nil
	case rollout.Reason == reasonNotObserved:
		return Hindrance{HindranceNotObserved, "its last change has not been observed yet"}, nil
	case rollout.State == RolloutInProgress:
		return Hindrance{HindranceRolloutInProgress, "it is still rolling out"}, nil
	}
	return Hindrance{}, nil
}
