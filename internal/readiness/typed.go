package readiness

import (
	"cmp"
	"fmt"
	"math"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// computeTyped returns the readiness of a Deployment, a Service, a ConfigMap or a Secret without converting it. ok is false for
// other kinds, and for an object that is being deleted.
func computeTyped(obj client.Object) (result Result, ok bool) {
	if obj.GetDeletionTimestamp() != nil {
		return Result{}, false
	}
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return ofDeployment(obj), true
	case *corev1.Service:
		return ofService(obj), true
	case *corev1.ConfigMap, *corev1.Secret:
		return Result{Status: status.CurrentStatus}, true
	}
	return Result{}, false
}

// withoutUnread returns an object without large fields that kstatus does not read, so that converting it takes much less time. If it
// removes a field, it returns a shallow copy. Otherwise it returns the object itself.
func withoutUnread(obj client.Object) client.Object {
	switch obj := obj.(type) {
	case *appsv1.StatefulSet:
		few := *obj
		few.ObjectMeta = withoutUnreadMetadata(&obj.ObjectMeta)
		few.Spec.Template, few.Spec.VolumeClaimTemplates = corev1.PodTemplateSpec{}, nil
		return &few
	case *appsv1.DaemonSet:
		few := *obj
		few.ObjectMeta = withoutUnreadMetadata(&obj.ObjectMeta)
		few.Spec.Template = corev1.PodTemplateSpec{}
		return &few
	case *batchv1.Job:
		few := *obj
		few.ObjectMeta = withoutUnreadMetadata(&obj.ObjectMeta)
		few.Spec.Template = corev1.PodTemplateSpec{}
		return &few
	case *corev1.PersistentVolumeClaim:
		few := *obj
		few.ObjectMeta = withoutUnreadMetadata(&obj.ObjectMeta)
		return &few
	case *policyv1.PodDisruptionBudget:
		few := *obj
		few.ObjectMeta = withoutUnreadMetadata(&obj.ObjectMeta)
		return &few
	}
	return obj
}

// withoutUnreadMetadata returns the metadata without labels, annotations, owner references and managed fields.
func withoutUnreadMetadata(m *metav1.ObjectMeta) metav1.ObjectMeta {
	few := *m
	few.Labels, few.Annotations, few.OwnerReferences, few.ManagedFields = nil, nil, nil, nil
	return few
}

func inProgress(reason, message string) Result {
	return Result{status.InProgressStatus, reason, message}
}

func ofDeployment(d *appsv1.Deployment) Result {
	s := &d.Status
	if s.ObservedGeneration != 0 && s.ObservedGeneration != d.Generation {
		return inProgress(ReasonNotObserved, fmt.Sprintf("%s generation is %d, but latest observed generation is %d", "Deployment", d.Generation, s.ObservedGeneration))
	}
	// kstatus looks at these two conditions before the rules of the kind. The Deployment controller sets neither of them.
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case "Reconciling":
			return inProgress(cmp.Or(c.Reason, string(c.Type)), c.Message)
		case "Stalled":
			return Result{status.FailedStatus, cmp.Or(c.Reason, string(c.Type)), c.Message}
		}
	}
	// If the spec has no deadline, the Deployment controller sets no condition Progressing.
	progressing := d.Spec.ProgressDeadlineSeconds == nil || *d.Spec.ProgressDeadlineSeconds == math.MaxInt32
	available := false
	for i := range s.Conditions {
		switch c := &s.Conditions[i]; c.Type {
		case appsv1.DeploymentProgressing:
			if c.Reason == "ProgressDeadlineExceeded" {
				return Result{status.FailedStatus, c.Reason, "Progress deadline exceeded"}
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
	return Result{Status: status.CurrentStatus}
}

func ofService(s *corev1.Service) Result {
	switch {
	case s.Spec.Type != corev1.ServiceTypeLoadBalancer:
	case s.Spec.ClusterIP == "":
		return inProgress("NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer")
	case len(s.Status.LoadBalancer.Ingress) == 0:
		return withoutAddress()
	}
	return Result{Status: status.CurrentStatus}
}

// ofServiceContent returns the readiness of an unstructured Service that is ready for kstatus: it also has to have an address if its type
// is LoadBalancer.
func ofServiceContent(content map[string]any) Result {
	serviceType, _, _ := unstructured.NestedString(content, "spec", "type")
	ingress, _, _ := unstructured.NestedFieldNoCopy(content, "status", "loadBalancer", "ingress")
	if addresses, _ := ingress.([]any); serviceType == string(corev1.ServiceTypeLoadBalancer) && len(addresses) == 0 {
		return withoutAddress()
	}
	return Result{Status: status.CurrentStatus}
}

func withoutAddress() Result {
	return inProgress("NoAddress", "the load balancer has no address yet: see status.loadBalancer.ingress")
}
