package ownedresources

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ready gives nil when the live object has become what it is meant to be, a *WaitingError
// otherwise. The rules are those of kstatus
// (https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus), written out for the
// kinds that are looked at most often, because kstatus wants them converted first.
func (k *kind) ready(live client.Object) error {
	p, quick := quickProgress(live)
	if !quick {
		var err error
		if p, err = kstatusProgress(k, live); err != nil {
			return err
		}
	}
	switch p.status {
	case status.CurrentStatus:
		return nil
	case status.FailedStatus:
		return &FailedError{reason: p.reason, message: k.describe(live) + ": " + p.message}
	}
	return &WaitingError{reason: p.reason, message: k.describe(live) + ": " + p.message}
}

// progress is how far an object is from what it is meant to be.
type progress struct {
	status          status.Status
	reason, message string // empty when it is current
}

func inProgress(reason, message string) progress {
	return progress{status.InProgressStatus, reason, message}
}

// kstatusProgress asks kstatus.
func kstatusProgress(k *kind, live client.Object) (progress, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return progress{}, fmt.Errorf("status of %s: %w", k.describe(live), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(k.gvk)
	result, err := status.Compute(u)
	if err != nil {
		return progress{}, fmt.Errorf("status of %s: %w", k.describe(live), err)
	}
	if result.Status == status.CurrentStatus {
		return progress{status: status.CurrentStatus}, nil
	}
	p := progress{result.Status, string(result.Status), result.Message}
	if len(result.Conditions) > 0 && result.Conditions[0].Reason != "" {
		p.reason = result.Conditions[0].Reason
	}
	return p, nil
}

// quickProgress is for the kinds that are written out below.
func quickProgress(live client.Object) (p progress, known bool) {
	if live.GetDeletionTimestamp() != nil {
		return progress{}, false
	}
	switch live := live.(type) {
	case *appsv1.Deployment:
		return deploymentProgress(live), true
	case *corev1.Service:
		return serviceProgress(live), true
	}
	return progress{}, false
}

// reasonNotObserved is kstatus's.
const reasonNotObserved = "LatestGenerationNotObserved"

func deploymentProgress(d *appsv1.Deployment) progress {
	s := &d.Status
	if s.ObservedGeneration != 0 && s.ObservedGeneration != d.Generation {
		return inProgress(reasonNotObserved, fmt.Sprintf("%s generation is %d, but latest observed generation is %d", "Deployment", d.Generation, s.ObservedGeneration))
	}
	for i := range s.Conditions { // said by somebody who knows better
		c := &s.Conditions[i]
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case "Reconciling":
			return inProgress(cmp.Or(c.Reason, string(c.Type)), c.Message)
		case "Stalled":
			return progress{status.FailedStatus, cmp.Or(c.Reason, string(c.Type)), c.Message}
		}
	}
	// Without a deadline the controller sets no condition Progressing.
	progressing := d.Spec.ProgressDeadlineSeconds == nil || *d.Spec.ProgressDeadlineSeconds == math.MaxInt32
	available := false
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case appsv1.DeploymentProgressing:
			if c.Reason == "ProgressDeadlineExceeded" {
				return progress{status.FailedStatus, c.Reason, "Progress deadline exceeded"}
			}
			progressing = progressing || c.Status == corev1.ConditionTrue && c.Reason == "NewReplicaSetAvailable"
		case appsv1.DeploymentAvailable:
			available = available || c.Status == corev1.ConditionTrue
		}
	}
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	switch {
	case want > s.Replicas:
		return inProgress("LessReplicas", fmt.Sprintf("Replicas: %d/%d", s.Replicas, want))
	case want > s.UpdatedReplicas:
		return inProgress("LessUpdated", fmt.Sprintf("Updated: %d/%d", s.UpdatedReplicas, want))
	case s.Replicas > want:
		return inProgress("ExtraPods", fmt.Sprintf("Pending termination: %d", s.Replicas-want))
	case s.UpdatedReplicas > s.AvailableReplicas:
		return inProgress("LessAvailable", fmt.Sprintf("Available: %d/%d", s.AvailableReplicas, s.UpdatedReplicas))
	case want > s.ReadyReplicas:
		return inProgress("LessReady", fmt.Sprintf("Ready: %d/%d", s.ReadyReplicas, want))
	case !progressing:
		return inProgress("ReplicaSetNotAvailable", "ReplicaSet not Available")
	case !available:
		return inProgress("DeploymentNotAvailable", "Deployment not Available")
	}
	return progress{status: status.CurrentStatus}
}

func serviceProgress(s *corev1.Service) progress {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ClusterIP == "" {
		return inProgress("NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer")
	}
	return progress{status: status.CurrentStatus}
}

func joinWaits(waits []*WaitingError) error {
	if len(waits) == 0 {
		return nil
	}
	messages := make([]string, len(waits))
	var after time.Duration // the shortest that there is
	for i, w := range waits {
		messages[i] = w.message
		if w.after > 0 && (after == 0 || w.after < after) {
			after = w.after
		}
	}
	return &WaitingError{reason: waits[0].reason, message: strings.Join(messages, "; "), after: after}
}
