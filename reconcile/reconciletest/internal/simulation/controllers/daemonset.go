package controllers

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodes are the names of the nodes if the cluster has no objects of kind Node.
var nodes = []string{"node-1", "node-2"}

// DaemonSets simulates the controller of DaemonSets.
func DaemonSets(ctx context.Context, c client.Client) error {
	var all appsv1.DaemonSetList
	return stepEach(ctx, c, &all, &all.Items, "roll out", "DaemonSet", stepDaemonSet)
}

// stepDaemonSet starts pending pods, deletes pods that are no longer wanted, and creates the missing ones. It deletes
// as many pods of an earlier template as may be unavailable.
func stepDaemonSet(ctx context.Context, c client.Client, d *appsv1.DaemonSet) error {
	wanted, err := nodesOf(ctx, c, d)
	if err != nil {
		return err
	}
	pods, err := podsOf(ctx, c, d)
	if err != nil {
		return err
	}
	hash := hashOf(&d.Spec.Template)
	status := appsv1.DaemonSetStatus{
		ObservedGeneration: d.Generation, DesiredNumberScheduled: int32(len(wanted)), CollisionCount: d.Status.CollisionCount, Conditions: d.Status.Conditions,
	}
	missing, outdated := slices.Clone(wanted), []*corev1.Pod(nil)
	for _, pod := range pods {
		at := slices.Index(missing, nodeOf(pod))
		if at < 0 || isFinished(pod) {
			if err := deletePod(ctx, c, pod); err != nil {
				return err
			}
			continue
		}
		missing = slices.Delete(missing, at, at+1)
		if isPending(pod) {
			if err := start(ctx, c, pod); err != nil {
				return err
			}
		}
		status.CurrentNumberScheduled++
		if isReady(pod) {
			status.NumberReady++
			status.NumberAvailable++
		}
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] == hash {
			status.UpdatedNumberScheduled++
		} else {
			outdated = append(outdated, pod)
		}
	}
	for _, node := range missing {
		if err := c.Create(ctx, daemonPod(d, hash, node)); err != nil {
			return err
		}
		status.CurrentNumberScheduled++
		status.UpdatedNumberScheduled++
	}
	status.NumberUnavailable = status.DesiredNumberScheduled - status.NumberAvailable
	if err := replaceDaemonPods(ctx, c, d, outdated, int(status.NumberUnavailable)); err != nil {
		return err
	}
	if equality.Semantic.DeepEqual(status, d.Status) {
		return nil
	}
	d.Status = status
	return c.Status().Update(ctx, d)
}

// replaceDaemonPods deletes outdated pods, which the next step creates again. It deletes every outdated pod that is not ready. It deletes a
// ready one only while fewer pods are unavailable than maxUnavailable allows.
func replaceDaemonPods(ctx context.Context, c client.Client, d *appsv1.DaemonSet, outdated []*corev1.Pod, unavailable int) error {
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return nil
	}
	most := intstr.FromInt32(1)
	if rolling := d.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		most = *rolling.MaxUnavailable
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(&most, int(d.Status.DesiredNumberScheduled), true)
	if err != nil {
		return err
	}
	for _, pod := range outdated {
		if isReady(pod) {
			if unavailable >= max(limit, 1) {
				continue
			}
			unavailable++
		}
		if err := deletePod(ctx, c, pod); err != nil {
			return err
		}
	}
	return nil
}

// nodesOf returns the names of the nodes on which the DaemonSet runs. It follows the template's node selector, and ignores taints.
func nodesOf(ctx context.Context, c client.Client, d *appsv1.DaemonSet) ([]string, error) {
	var all corev1.NodeList
	if err := c.List(ctx, &all); err != nil {
		return nil, err
	}
	if len(all.Items) == 0 {
		return nodes, nil
	}
	selector := labels.SelectorFromSet(d.Spec.Template.Spec.NodeSelector)
	var names []string
	for i := range all.Items {
		if selector.Matches(labels.Set(all.Items[i].Labels)) {
			names = append(names, all.Items[i].Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names, nil
}

// daemonPod returns a pod for a node. Its affinity binds it to the node, as with the real controller.
func daemonPod(d *appsv1.DaemonSet, hash, node string) *corev1.Pod {
	pod := podOf(d, appsv1.SchemeGroupVersion.WithKind("DaemonSet"), &d.Spec.Template, map[string]string{appsv1.ControllerRevisionHashLabelKey: hash})
	pod.GenerateName = d.Name + "-"
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	affinity := ptr.Deref(pod.Spec.Affinity.NodeAffinity, corev1.NodeAffinity{})
	affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
	pod.Spec.Affinity.NodeAffinity = &affinity
	return pod
}

// nodeOf returns the node that a pod of a DaemonSet is for.
func nodeOf(pod *corev1.Pod) string {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, field := range term.MatchFields {
				if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
					return field.Values[0]
				}
			}
		}
	}
	return ""
}
