package ensemble_test

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	ensembleLabel = "example.com/ensemble"
	versionLabel  = "example.com/version"
)

func labelsOf(e *Ensemble) map[string]string { return map[string]string{ensembleLabel: e.Name} }

func metaOf(e *Ensemble, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: e.Namespace, Name: name, Labels: labelsOf(e)}
}

// reconcileService applies the Service by which the members find each other.
func (r *EnsembleReconciler) reconcileService(ctx context.Context, e *Ensemble) error {
	s := &corev1.Service{ObjectMeta: metaOf(e, e.Name)}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, s, func() error {
		s.Spec.ClusterIP, s.Spec.Selector, s.Spec.PublishNotReadyAddresses = corev1.ClusterIPNone, labelsOf(e), true
		s.Spec.Ports = []corev1.ServicePort{{Name: "peers", Port: 2380, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(2380)}}
		return controllerutil.SetControllerReference(e, s, r.Scheme)
	})
	return err
}

// reconcileMember creates the objects that a member lacks, and returns its pod. If the pod does not exist yet, it returns nil.
func (r *EnsembleReconciler) reconcileMember(ctx context.Context, e *Ensemble, name string) (*corev1.Pod, error) {
	claim, err := r.ensure(ctx, e, &corev1.PersistentVolumeClaim{
		ObjectMeta: metaOf(e, name),
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	if err != nil || claim.GetDeletionTimestamp() != nil { // its event will trigger another pass
		return nil, err
	}
	pod, err := r.ensure(ctx, e, memberPod(e, name))
	if err != nil || pod.GetDeletionTimestamp() != nil {
		return nil, err
	}
	return pod.(*corev1.Pod), nil
}

// ensure creates a child if it does not exist. It returns the child that exists.
func (r *EnsembleReconciler) ensure(ctx context.Context, e *Ensemble, child client.Object) (client.Object, error) {
	is := child.DeepCopyObject().(client.Object)
	err := r.Get(ctx, client.ObjectKeyFromObject(child), is)
	if apierrors.IsNotFound(err) {
		if err := controllerutil.SetControllerReference(e, child, r.Scheme); err != nil {
			return nil, err
		}
		return child, r.Create(ctx, child)
	}
	if err == nil && !metav1.IsControlledBy(is, e) {
		return nil, fmt.Errorf("%s belongs to somebody else", child.GetName())
	}
	return is, err
}

func memberPod(e *Ensemble, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metaOf(e, name)}
	pod.Labels[versionLabel] = e.Spec.Version
	pod.Spec = corev1.PodSpec{
		Hostname: name, Subdomain: e.Name,
		Containers: []corev1.Container{{
			Name: "store", Image: "registry.example.com/store:" + e.Spec.Version,
			VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}}},
	}
	return pod
}

// sweep deletes the pods and claims of names that are not members any more. It lists them on the API server, since the cache may not show
// all of them yet. Then it asks the store once more, since a new member is registered before it has a pod.
func (r *EnsembleReconciler) sweep(ctx context.Context, e *Ensemble, members []string) error {
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
		surplus, err := r.surplus(ctx, e, members, list)
		if err != nil {
			return err
		}
		if len(surplus) == 0 {
			continue
		}
		now, err := r.Store.Members(ctx, keyOf(e))
		if err != nil {
			return err
		}
		for _, obj := range surplus {
			if slices.Contains(now, obj.GetName()) {
				continue
			}
			uid := obj.GetUID()
			if err := r.Delete(ctx, obj, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
				return err
			}
		}
	}
	return nil
}

// surplus returns the children of a kind that belong to no member and are not being deleted.
func (r *EnsembleReconciler) surplus(ctx context.Context, e *Ensemble, members []string, list client.ObjectList) ([]client.Object, error) {
	if err := r.APIReader.List(ctx, list, client.InNamespace(e.Namespace), client.MatchingLabels(labelsOf(e))); err != nil {
		return nil, err
	}
	var all []client.Object
	switch list := list.(type) {
	case *corev1.PodList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	case *corev1.PersistentVolumeClaimList:
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
	return slices.DeleteFunc(all, func(obj client.Object) bool {
		return obj.GetDeletionTimestamp() != nil || slices.Contains(members, obj.GetName()) || !metav1.IsControlledBy(obj, e)
	}), nil
}

// isFree reports whether no pod and no claim of an earlier member with this name is left.
func (r *EnsembleReconciler) isFree(ctx context.Context, e *Ensemble, name string) (bool, error) {
	for _, obj := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		err := r.APIReader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, obj)
		if !apierrors.IsNotFound(err) {
			return false, err
		}
	}
	return true, nil
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
