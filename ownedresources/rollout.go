package ownedresources

import (
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RolloutState is how far an object is from what its spec says.
type RolloutState string

const (
	// RolloutComplete: it is there.
	RolloutComplete RolloutState = "Complete"
	// RolloutInProgress: it is on its way, or nobody has looked at the spec yet.
	RolloutInProgress RolloutState = "InProgress"
	// RolloutFailed: it will not get there unless something changes.
	RolloutFailed RolloutState = "Failed"
	// RolloutUnknown: nobody waits for it any more. Only [ObserveRestart] gives it.
	RolloutUnknown RolloutState = "Unknown"
)

// Rollout is how far an object is, by the rules of kstatus.
type Rollout struct {
	State RolloutState
	// Reason, in CamelCase, and Message say why it is not complete.
	Reason, Message string
}

// ObserveRollout observes an object of any kind, whoever owns it. Its type must be in the scheme.
func ObserveRollout(obj client.Object, scheme *runtime.Scheme) (Rollout, error) {
	p, quick := quickProgress(obj)
	if !quick {
		k, err := builtInKinds.of(obj, scheme)
		if err != nil {
			return Rollout{}, err
		}
		if p, err = kstatusProgress(k, obj); err != nil {
			return Rollout{}, err
		}
	}
	switch p.status {
	case status.CurrentStatus:
		return Rollout{State: RolloutComplete}, nil
	case status.FailedStatus:
		return Rollout{RolloutFailed, p.reason, p.message}, nil
	}
	return Rollout{RolloutInProgress, p.reason, p.message}, nil
}

// How long [ObserveRestart] waits for what may never come.
const (
	restartShown = time.Minute // by the cache
	rolloutLimit = time.Hour
)

// ObserveRestart observes what came of a [Restart] of a Deployment, StatefulSet or DaemonSet at a time, which was sent so long
// ago. It is not complete before the object shows the restart, so that a cache that is behind does not tell of the
// rollout before. It comes to an end: what is in progress for more than an hour, or paused, or shows no restart after a
// minute, since somebody has taken it back as kubectl rollout undo does, is [RolloutUnknown].
func ObserveRestart(workload client.Object, at time.Time, age time.Duration, scheme *runtime.Scheme) (Rollout, error) {
	template, err := templateOf(workload)
	if err != nil {
		return Rollout{}, err
	}
	if last, ok := restartedAt(template); !ok || last.Before(at.Truncate(time.Second)) {
		if age > restartShown {
			return Rollout{RolloutUnknown, "RestartUndone", "somebody has taken the restart back"}, nil
		}
		return Rollout{RolloutInProgress, "RestartNotSeen", "the restart is not seen yet"}, nil
	}
	rollout, err := ObserveRollout(workload, scheme)
	switch {
	case err != nil || rollout.State != RolloutInProgress:
		return rollout, err
	case isPaused(workload):
		return Rollout{RolloutUnknown, "Paused", "it was paused while it rolled out"}, nil
	case age > rolloutLimit:
		return Rollout{RolloutUnknown, "TimedOut", "it was still rolling out after " + rolloutLimit.String()}, nil
	}
	return rollout, nil
}

func isPaused(workload client.Object) bool {
	d, ok := workload.(*appsv1.Deployment)
	return ok && d.Spec.Paused
}
