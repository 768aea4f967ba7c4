package workload

import (
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/readiness"
)

// RolloutState is how far the rollout of an object's spec is.
type RolloutState string

const (
	// RolloutComplete means that the object's spec is rolled out.
	RolloutComplete RolloutState = "Complete"
	// RolloutInProgress means that the rollout goes on, or that the controller has not observed the spec yet.
	RolloutInProgress RolloutState = "InProgress"
	// RolloutFailed means that the rollout does not complete unless something changes.
	RolloutFailed RolloutState = "Failed"
	// RolloutUnknown means that it is unknown when the rollout will be complete: the workload's controller replaces no more
	// pods until somebody does something, or [ObserveRestart] has waited long enough.
	RolloutUnknown RolloutState = "Unknown"
)

// Rollout is how far the rollout of an object's spec is, by the rules of kstatus.
type Rollout struct {
	// State is how far the rollout is. Only RolloutComplete means that the spec is rolled out.
	State RolloutState
	// Reason, in CamelCase, and Message explain why the rollout is not complete. If it is complete, they are empty, except
	// with the reason Partition.
	Reason, Message string
}

// ObserveRollout returns how far the rollout of an object's spec is, by the rules of kstatus. The object may have any kind
// and any owner. It sends no request. It returns an error if the scheme does not have the object's type, or if the object's
// status cannot be read.
//
// For Deployments, StatefulSets and DaemonSets it also looks at what their controllers do not do. The state is
//
//   - [RolloutUnknown] with the reason Paused, if a Deployment was paused before the rollout was complete;
//   - RolloutUnknown with the reason OnDelete, while a StatefulSet or DaemonSet with this update strategy has pods of a
//     former template: its controller replaces a pod only when somebody deletes it. (To kstatus such a StatefulSet is
//     complete, and such a DaemonSet in progress.)
//   - [RolloutComplete] with the reason Partition, if a StatefulSet has replaced the pods that its partition covers, and the
//     others are of a former template. The message says how many;
//   - [RolloutInProgress] until the pods of a StatefulSet have been ready for its minReadySeconds.
func ObserveRollout(obj client.Object, scheme *runtime.Scheme) (Rollout, error) {
	obj, err := typed(obj)
	if err != nil {
		return Rollout{}, err
	}
	result, err := readiness.ComputeInScheme(asRollingUpdate(obj), scheme)
	if err != nil {
		return Rollout{}, err
	}
	rollout := Rollout{RolloutInProgress, result.Reason, result.Message}
	switch result.Status {
	case status.CurrentStatus:
		rollout = Rollout{State: RolloutComplete}
	case status.FailedStatus:
		rollout.State = RolloutFailed
	}
	return withStrategy(obj, rollout), nil
}

// How long ObserveRestart waits for what may never happen.
const (
	annotationTimeout = time.Minute // until the cache shows the annotation
	rolloutTimeout    = time.Hour
)

// ObserveRestart returns how far the rollout of a [Restart] of a Deployment, StatefulSet or DaemonSet is. at is the time
// that was passed to Restart, and age is how long ago Restart sent it.
//
// The rollout is in progress, with the reason RestartNotSeen, until the object shows the restart. So if the cache is behind,
// an earlier rollout is not mistaken for this one. A restart at a later time counts as well: it replaces the same pods.
//
// Waiting always ends. The state is [RolloutUnknown]
//
//   - after a minute without the restart on the object, with the reason RestartUndone: somebody has removed the
//     annotation, as kubectl rollout undo does;
//   - if a Deployment was paused before the rollout was complete, with the reason Paused;
//   - if pods of the former template stay because of the update strategy, with the reason OnDelete or Partition: a restart is
//     complete only when all pods are replaced. With a partition it is in progress until the pods that the partition covers
//     are replaced;
//   - after an hour in progress, with the reason TimedOut: without a progress deadline a rollout may never fail.
//
// The age is negative if a clock was set back. A negative age counts as zero, so no time limit is reached. Check that the
// recorded time is not in the future: if it is a year ahead, a restart that never completes is in progress for a year and an
// hour.
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
	case err != nil:
		return rollout, err
	case rollout.Reason == reasonPartition:
		rollout.State = RolloutUnknown
	case rollout.State == RolloutInProgress && age > rolloutTimeout:
		return Rollout{RolloutUnknown, "TimedOut", "it was still rolling out after " + rolloutTimeout.String()}, nil
	}
	return rollout, nil
}
