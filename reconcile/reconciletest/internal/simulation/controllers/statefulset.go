package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")

// StatefulSets simulates the controller of StatefulSets.
func StatefulSets(ctx context.Context, c client.Client) error {
	var all appsv1.StatefulSetList
	return stepEach(ctx, c, &all, &all.Items, "roll out", "StatefulSet", stepStatefulSet)
}

// statefulSet is a StatefulSet during one step of its controller.
type statefulSet struct {
	obj             *appsv1.StatefulSet
	client          client.Client
	current, update revision
	pods            map[int]*corev1.Pod // the pods by ordinal; this step changes them
}

func stepStatefulSet(ctx context.Context, c client.Client, obj *appsv1.StatefulSet) (err error) {
	s := &statefulSet{obj: obj, client: c}
	if s.current, s.update, err = revisionsOf(ctx, c, obj); err != nil {
		return err
	}
	if err := s.findPods(ctx); err != nil {
		return err
	}
	if err := s.setClaimOwners(ctx); err != nil {
		return err
	}
	// As with the real controller, nothing is removed or updated before all replicas run. With the policy OrderedReady, one pod at a time
	// is created, removed or replaced.
	for _, next := range []func(context.Context) (wait bool, err error){s.createMissing, s.removeSurplus, s.replaceOutdated} {
		if wait, err := next(ctx); wait || err != nil {
			if err != nil {
				return err
			}
			break
		}
	}
	return s.updateStatus(ctx)
}

// findPods finds the pods of the StatefulSet. It adopts pods that match the selector and have no controller, and starts pending pods.
func (s *statefulSet) findPods(ctx context.Context) error {
	s.pods = map[int]*corev1.Pod{}
	selector, err := metav1.LabelSelectorAsSelector(s.obj.Spec.Selector)
	if err != nil {
		return err
	}
	var list corev1.PodList
	if err := s.client.List(ctx, &list, client.InNamespace(s.obj.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		pod := &list.Items[i]
		ordinal, is := s.ordinalOf(pod.Name)
		if !is || pod.DeletionTimestamp != nil || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if metav1.GetControllerOf(pod) == nil {
			pod.OwnerReferences = append(pod.OwnerReferences, *metav1.NewControllerRef(s.obj, statefulSetKind))
			if err := s.client.Update(ctx, pod); err != nil {
				return err
			}
		}
		if !metav1.IsControlledBy(pod, s.obj) {
			continue
		}
		s.pods[ordinal] = pod
		if isPending(pod) {
			if err := start(ctx, s.client, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// ordinalOf returns the ordinal in the name of a pod.
func (s *statefulSet) ordinalOf(pod string) (ordinal int, is bool) {
	suffix, found := strings.CutPrefix(pod, s.obj.Name+"-")
	ordinal, err := strconv.Atoi(suffix)
	return ordinal, found && err == nil && ordinal >= 0
}

// first returns the lowest ordinal. end returns the ordinal after the highest one.
func (s *statefulSet) first() int {
	if s.obj.Spec.Ordinals == nil {
		return 0
	}
	return int(s.obj.Spec.Ordinals.Start)
}

func (s *statefulSet) end() int { return s.first() + int(ptr.Deref(s.obj.Spec.Replicas, 1)) }

func (s *statefulSet) isOrdered() bool {
	return s.obj.Spec.PodManagementPolicy != appsv1.ParallelPodManagement
}

// createMissing creates the pods that are missing, and replaces pods that have finished. With the policy OrderedReady, it waits for each
// pod to be ready before it goes on.
func (s *statefulSet) createMissing(ctx context.Context) (wait bool, err error) {
	for ordinal := s.first(); ordinal < s.end(); ordinal++ {
		pod := s.pods[ordinal]
		if pod != nil && isFinished(pod) {
			if err := s.remove(ctx, ordinal); err != nil {
				return true, err
			}
			pod = nil
		}
		if pod == nil {
			if err := s.create(ctx, ordinal); err != nil {
				return true, err
			}
		}
		if s.isOrdered() && (pod == nil || !isReady(pod)) {
			return true, nil
		}
	}
	return false, nil
}

// removeSurplus deletes the pods beyond the replicas, from the highest ordinal on. With the policy OrderedReady, it deletes one at a time.
func (s *statefulSet) removeSurplus(ctx context.Context) (wait bool, err error) {
	for _, ordinal := range slices.Backward(slices.Sorted(maps.Keys(s.pods))) {
		if ordinal >= s.first() && ordinal < s.end() {
			continue
		}
		if err := s.remove(ctx, ordinal); err != nil || s.isOrdered() {
			return true, err
		}
	}
	return false, nil
}

// replaceOutdated deletes the pod with the highest ordinal that has another revision, unless it is below the partition. It waits until the
// pods with higher ordinals are ready. The next step creates the pod again.
func (s *statefulSet) replaceOutdated(ctx context.Context) (wait bool, err error) {
	if s.obj.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return false, nil
	}
	for ordinal := s.end() - 1; ordinal >= s.first()+s.partition(); ordinal-- {
		pod := s.pods[ordinal]
		if pod == nil {
			return true, nil
		}
		if pod.Labels[appsv1.ControllerRevisionHashLabelKey] != s.update.name {
			return true, s.remove(ctx, ordinal)
		}
		if !isReady(pod) {
			return true, nil
		}
	}
	return false, nil
}

func (s *statefulSet) partition() int {
	if rolling := s.obj.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return int(ptr.Deref(rolling.Partition, 0))
	}
	return 0
}

// create creates a pod and its claims. A pod below the partition gets the current revision. Any other pod gets the revision of the update.
func (s *statefulSet) create(ctx context.Context, ordinal int) error {
	is := s.update
	if s.obj.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType && ordinal < s.first()+s.partition() {
		is = s.current
	}
	name := fmt.Sprintf("%s-%d", s.obj.Name, ordinal)
	pod := podOf(s.obj, statefulSetKind, &is.template, map[string]string{
		appsv1.StatefulSetPodNameLabel: name, appsv1.PodIndexLabel: strconv.Itoa(ordinal), appsv1.ControllerRevisionHashLabelKey: is.name,
	})
	pod.Name, pod.Spec.Hostname, pod.Spec.Subdomain = name, name, s.obj.Spec.ServiceName
	var volumes []corev1.Volume
	for i := range s.obj.Spec.VolumeClaimTemplates {
		claim := s.claimOf(&s.obj.Spec.VolumeClaimTemplates[i], ordinal)
		if s.deletesClaims() {
			claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.obj, statefulSetKind)}
		}
		if err := s.client.Create(ctx, claim); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
		volumes = append(volumes, corev1.Volume{Name: s.obj.Spec.VolumeClaimTemplates[i].Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}})
	}
	for _, v := range pod.Spec.Volumes {
		if !slices.ContainsFunc(volumes, func(of corev1.Volume) bool { return of.Name == v.Name }) {
			volumes = append(volumes, v)
		}
	}
	pod.Spec.Volumes = volumes
	err := s.client.Create(ctx, pod)
	if err == nil {
		s.pods[ordinal] = pod
	}
	return client.IgnoreAlreadyExists(err) // a pod of a former StatefulSet may exist, and will be deleted soon
}

// remove deletes a pod. If its claims are to be deleted with it, it first makes the pod their owner.
func (s *statefulSet) remove(ctx context.Context, ordinal int) error {
	pod := s.pods[ordinal]
	delete(s.pods, ordinal)
	policy := s.obj.Spec.PersistentVolumeClaimRetentionPolicy
	if surplus := ordinal < s.first() || ordinal >= s.end(); surplus && policy != nil && policy.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
		if err := s.setClaimOwner(ctx, ordinal, owner); err != nil {
			return err
		}
	}
	return deletePod(ctx, s.client, pod)
}

// updateStatus counts the pods in the status. When all pods are updated, the revision of the update becomes the current one.
func (s *statefulSet) updateStatus(ctx context.Context) error {
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: s.obj.Generation, CurrentRevision: s.current.name, UpdateRevision: s.update.name,
		CollisionCount: new(int32), Conditions: s.obj.Status.Conditions,
	}
	for _, pod := range s.pods {
		status.Replicas++
		if isReady(pod) {
			status.ReadyReplicas++
			status.AvailableReplicas++
		}
		revision := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
		if revision == s.current.name {
			status.CurrentReplicas++
		}
		if revision == s.update.name {
			status.UpdatedReplicas++
		}
	}
	wanted := ptr.Deref(s.obj.Spec.Replicas, 1)
	if s.obj.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType &&
		status.UpdatedReplicas == wanted && status.ReadyReplicas == wanted && status.Replicas == wanted {
		status.CurrentReplicas, status.CurrentRevision = status.UpdatedReplicas, status.UpdateRevision
	}
	if equality.Semantic.DeepEqual(status, s.obj.Status) {
		return nil
	}
	s.obj.Status = status
	return s.client.Status().Update(ctx, s.obj)
}
