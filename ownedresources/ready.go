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
func (a *applier) ready(o *owner, live client.Object) error {
	k, err := a.kinds.of(live, o.client.Scheme())
	if err != nil {
		return err
	}
	reason, message, _, err := progressOf(k, live)
	if err != nil || reason == "" {
		return err
	}
	return &WaitingError{reason: reason, message: k.describe(live) + ": " + message}
}

// progressOf gives no reason when the object is ready; quick says that kstatus was not needed.
func progressOf(k *kind, live client.Object) (reason, message string, quick bool, err error) {
	switch live := live.(type) {
	case *appsv1.Deployment:
		reason, message = deploymentProgress(live)
		return reason, message, true, nil
	case *corev1.Service:
		reason, message = serviceProgress(live)
		return reason, message, true, nil
	}
	reason, message, err = progress(k, live)
	return reason, message, false, err
}

// progress asks kstatus.
func progress(k *kind, live client.Object) (reason, message string, err error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return "", "", fmt.Errorf("status of %s: %w", k.describe(live), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(k.gvk)
	result, err := status.Compute(u)
	if err != nil {
		return "", "", fmt.Errorf("status of %s: %w", k.describe(live), err)
	}
	if result.Status == status.CurrentStatus {
		return "", "", nil
	}
	reason = string(result.Status)
	if len(result.Conditions) > 0 && result.Conditions[0].Reason != "" {
		reason = result.Conditions[0].Reason
	}
	return reason, result.Message, nil
}

func deploymentProgress(d *appsv1.Deployment) (reason, message string) {
	s := &d.Status
	if s.ObservedGeneration != 0 && s.ObservedGeneration != d.Generation {
		return "LatestGenerationNotObserved", fmt.Sprintf("%s generation is %d, but latest observed generation is %d", "Deployment", d.Generation, s.ObservedGeneration)
	}
	for i := range s.Conditions { // said by somebody who knows better
		if c := &s.Conditions[i]; (c.Type == "Reconciling" || c.Type == "Stalled") && c.Status == corev1.ConditionTrue {
			return cmp.Or(c.Reason, string(c.Type)), c.Message
		}
	}
	// Without a deadline the controller sets no condition Progressing.
	progressing := d.Spec.ProgressDeadlineSeconds == nil || *d.Spec.ProgressDeadlineSeconds == math.MaxInt32
	available := false
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case appsv1.DeploymentProgressing:
			if c.Reason == "ProgressDeadlineExceeded" {
				return c.Reason, "Progress deadline exceeded"
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
		return "LessReplicas", fmt.Sprintf("Replicas: %d/%d", s.Replicas, want)
	case want > s.UpdatedReplicas:
		return "LessUpdated", fmt.Sprintf("Updated: %d/%d", s.UpdatedReplicas, want)
	case s.Replicas > want:
		return "ExtraPods", fmt.Sprintf("Pending termination: %d", s.Replicas-want)
	case s.UpdatedReplicas > s.AvailableReplicas:
		return "LessAvailable", fmt.Sprintf("Available: %d/%d", s.AvailableReplicas, s.UpdatedReplicas)
	case want > s.ReadyReplicas:
		return "LessReady", fmt.Sprintf("Ready: %d/%d", s.ReadyReplicas, want)
	case !progressing:
		return "ReplicaSetNotAvailable", "ReplicaSet not Available"
	case !available:
		return "DeploymentNotAvailable", "Deployment not Available"
	}
	return "", ""
}

func serviceProgress(s *corev1.Service) (reason, message string) {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.ClusterIP == "" {
		return "NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer"
	}
	return "", ""
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
