package ownedresources

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The reasons of a [RestartBlocker].
const (
	// BlockedAlreadyRestarted: the pods were told to be replaced at a later time.
	BlockedAlreadyRestarted = "AlreadyRestarted"
	// BlockedPaused: a Deployment is paused, and so would not replace its pods before that ends.
	BlockedPaused = "DeploymentPaused"
	// BlockedRolloutInProgress: it is replacing its pods, for whatever reason.
	BlockedRolloutInProgress = "RolloutInProgress"
	// BlockedNotObserved: its controller has not seen its last change yet, which may be no more than an annotation. That
	// is over in a moment, and an event of it tells: wait and ask again rather than leave the restart out.
	BlockedNotObserved = "NotObserved"
)

// RestartBlocker is why a restart at a time should be left out, or wait. The zero value is none.
type RestartBlocker struct{ Reason, Message string }

// CheckRestart looks for what is in the way of a [Restart] of a Deployment, StatefulSet or DaemonSet at a time. That very
// restart is not: if it has been sent already, as before a crash, Restart does nothing, and its rollout is to be watched.
func CheckRestart(workload client.Object, at time.Time, scheme *runtime.Scheme) (RestartBlocker, error) {
	template, err := templateOf(workload)
	if err != nil {
		return RestartBlocker{}, err
	}
	at = at.Truncate(time.Second)
	last, ever := restartedAt(template)
	rollout, err := ObserveRollout(workload, scheme)
	switch {
	case err != nil || ever && last.Equal(at):
		return RestartBlocker{}, err
	case ever && last.After(at):
		return RestartBlocker{BlockedAlreadyRestarted, "it was restarted already, at " + last.UTC().Format(time.RFC3339)}, nil
	case isPaused(workload):
		return RestartBlocker{BlockedPaused, "it is paused"}, nil
	case rollout.Reason == reasonNotObserved:
		return RestartBlocker{BlockedNotObserved, "its last change has not been observed yet"}, nil
	case rollout.State == RolloutInProgress:
		return RestartBlocker{BlockedRolloutInProgress, "it is still rolling out"}, nil
	}
	return RestartBlocker{}, nil
}
