package ownedresources

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewDeployment returns a Deployment with the name and namespace of its owner. It is a plain struct: edit it before it
// is applied.
//
// The selector, which is immutable once the Deployment exists, and the labels of the pods are both a copy of selector.
// If selector is nil, they are the labels app.kubernetes.io/name and app.kubernetes.io/instance of [Labels]. The
// metadata of the Deployment has all of Labels. The pods have only the labels of the selector, so a change of another
// label replaces no pods. Replicas are unset: the API server sets one, or an autoscaler decides.
//
// Pods and containers meet the Pod Security Standard "restricted": see [PodTemplate].
//
// NewDeployment does not change containers.
func NewDeployment(owner client.Object, selector map[string]string, containers ...corev1.Container) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: ObjectMeta(owner),
		Spec: appsv1.DeploymentSpec{
			Selector: labelSelector(owner, selector),
			Template: PodTemplate(owner, selector, containers...),
		},
	}
}

// NewStatefulSet returns a StatefulSet with the name and namespace of its owner. It is a plain struct: edit it before
// it is applied.
//
// Selector, labels, replicas and security of the pods are as in [NewDeployment].
//
// ServiceName, which is immutable too, is the owner's name. It names the headless Service by which each pod has a DNS
// name: a [NewService] with the same owner and selector, and with ClusterIP set to corev1.ClusterIPNone.
//
// The API server refuses a name that is not a DNS label. If the name has more than 52 characters, the pods are never
// created: check it with [ValidateName]. Templates of volume claims are immutable.
func NewStatefulSet(owner client.Object, selector map[string]string, containers ...corev1.Container) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: ObjectMeta(owner),
		Spec: appsv1.StatefulSetSpec{
			ServiceName: owner.GetName(),
			Selector:    labelSelector(owner, selector),
			Template:    PodTemplate(owner, selector, containers...),
		},
	}
}

// NewDaemonSet returns a DaemonSet with the name and namespace of its owner. It is a plain struct: edit it before it is
// applied.
//
// Selector, labels and security of the pods are as in [NewDeployment]. An agent that needs the host, such as its
// network or its files, cannot meet the Pod Security Standard "restricted": see [PodTemplate]. No toleration is set, so
// nodes with a taint of their own, such as control plane nodes, get no pod.
func NewDaemonSet(owner client.Object, selector map[string]string, containers ...corev1.Container) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: ObjectMeta(owner),
		Spec: appsv1.DaemonSetSpec{
			Selector: labelSelector(owner, selector),
			Template: PodTemplate(owner, selector, containers...),
		},
	}
}

// NewPodDisruptionBudget returns a PodDisruptionBudget with the name and namespace of its owner. It is a plain struct:
// edit it before it is applied. It selects the pods of a [NewDeployment] or [NewStatefulSet] with the same owner and
// selector.
//
// MaxUnavailable is 1: nodes are drained one pod at a time, and the node of a single replica can be drained too, which a
// MinAvailable of 1 prevents. To use MinAvailable, set MaxUnavailable to nil: the API server refuses a budget with both.
//
// UnhealthyPodEvictionPolicy is unset. With policyv1.AlwaysAllow, pods that do not become ready do not block a drain
// (https://kubernetes.io/docs/tasks/run-application/configure-pdb/#unhealthy-pod-eviction-policy).
func NewPodDisruptionBudget(owner client.Object, selector map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: ObjectMeta(owner),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)),
			Selector:       labelSelector(owner, selector),
		},
	}
}

// NewHorizontalPodAutoscaler returns a HorizontalPodAutoscaler with the name and namespace of its owner. It is a plain
// struct: edit it before it is applied.
//
// It scales target, which is usually another child of the owner. It refers to target by name and kind. The kind is
// taken from target's TypeMeta, or from its Go type for a kind of Kubernetes itself. A custom resource with a scale
// subresource needs a TypeMeta: otherwise the API server refuses the autoscaler, since the kind is empty.
//
// MinReplicas is unset, so the API server sets 1. Without metrics it sets a target of 80% of the requested CPU.
//
// Leave the replicas of target unset, as [NewDeployment] does: otherwise each pass reverts what the autoscaler sets.
func NewHorizontalPodAutoscaler(
	owner, target client.Object, maxReplicas int32, metrics ...autoscalingv2.MetricSpec,
) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: ObjectMeta(owner),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: referenceTo(target),
			MaxReplicas:    maxReplicas,
			Metrics:        slices.Clone(metrics),
		},
	}
}

// referenceTo returns a reference to an object by its kind and name. A typed object usually has no TypeMeta.
func referenceTo(target client.Object) autoscalingv2.CrossVersionObjectReference {
	gvk := target.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		gvk, _ = apiutil.GVKForObject(target, scheme.Scheme) // it is empty if the type is not known
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return autoscalingv2.CrossVersionObjectReference{APIVersion: apiVersion, Kind: kind, Name: target.GetName()}
}
