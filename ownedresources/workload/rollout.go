package workload

import (
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/readiness"
)

// RolloutState is how far an object is from what its spec asks for.
type RolloutState string

const (
	// RolloutComplete means that the object has reached what its spec asks for.
	RolloutComplete RolloutState = "Complete"
	// RolloutInProgress means that the rollout goes on, or that the controller has not observed the spec yet.
	RolloutInProgress RolloutState = "InProgress"
	// RolloutFailed means that the rollout does not complete unless something changes.
	RolloutFailed RolloutState = "Failed"
	// RolloutUnknown means that waiting for the rollout has ended without a result. Only [ObserveRestart] returns it.
	RolloutUnknown RolloutState = "Unknown"
)

// Rollout is the observed progress of an object towards its spec, by the rules of kstatus.
type Rollout struct {
	// State is how far the rollout is. Only RolloutComplete means that the object is as its spec asks.
	State RolloutState
	// Reason, in CamelCase, and Message explain why the rollout is not complete. They are empty if it is.
	Reason, Message string
}

// ObserveRollout returns how far an object of any kind is from what its spec asks for, by the rules of kstatus, whoever owns
// it. It sends no request. It returns an error if the scheme does not have the object's type, or if the object's status
// cannot be read.
func ObserveRollout(obj client.Object, scheme *runtime.Scheme) (Rollout, error) {
	result, err := readiness.ComputeInScheme(obj, scheme)
	if err != nil {
		return Rollout{}, err
	}
	switch result.Status {
	case status.CurrentStatus:
		return Rollout{State: RolloutComplete}, nil
	case status.FailedStatus:
		return Rollout{RolloutFailed, result.Reason, result.Message}, nil
	}
	return Rollout{RolloutInProgress, result.Reason, result.Message}, nil
}

// How long ObserveRestart waits for what may never happen.
const (
	annotationTimeout = time.Minute // until the cache shows the annotation
	rolloutTimeout    = time.Hour
)

// ObserveRestart returns how far the rollout of a [Restart] of a Deployment, StatefulSet or DaemonSet is. at is the time
// that was passed to Restart, and age is how long ago Restart sent it.
//
// The rollout is in progress, with the reason RestartNotSeen, until the object shows the restart. So an earlier rollout is
// never taken for this one when the cache is behind. A restart at a later time counts as well: it replaces the same pods.
//
// Waiting always ends. The state is [RolloutUnknown]
//
//   - after a minute without the restart on the object, with the reason RestartUndone: somebody has removed the
//     annotation, as kubectl rollout undo does;
//   - if a Deployment was paused before the rollout was complete, with the reason Paused;
//   - after an hour in progress, with the reason TimedOut: without a progress deadline a rollout may never fail.
//
// ObserveRestart returns an error for an object of another type, and if the scheme does not have the type.
func ObserveRestart(workload client.Object, at time.Time, age time.Duration, scheme *runtime.Scheme) (Rollout, error) {
	template, err := podTemplate(workload)
	if err != nil {
		return Rollout{}, err
	}
	if last, ok := restartedAt(template); !ok || last.Before(at.Truncate(time.Second)) {
		if age > annotationTimeout {
			return Rollout{RolloutUnknown, "RestartUndone", "the restart was undone: the pod template does not have its annotation"}, nil
		}
		return Rollout{RolloutInProgress, "RestartNotSeen", "the object does not show the restart yet"}, nil
	}
	rollout, err := ObserveRollout(workload, scheme)
	switch {
	case err != nil || rollout.State != RolloutInProgress:
		return rollout, err
	case isPaused(workload):
		return Rollout{RolloutUnknown, "Paused", "it was paused while it rolled out"}, nil
	case age > rolloutTimeout:
		return Rollout{RolloutUnknown, "TimedOut", "it was still rolling out after " + rolloutTimeout.String()}, nil
	}
	return rollout, nil
}
