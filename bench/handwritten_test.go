package bench

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/bench/api"
)

// handWritten is the reconciler of the usual tutorial. It creates missing children and repairs the number of replicas. It
// detects no other drift, and no missing Service once the Deployment exists.
type handWritten struct{ client.Client }

func (r *handWritten) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s api.Site
	if err := r.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var d appsv1.Deployment
	err := r.Get(ctx, req.NamespacedName, &d)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.createChildren(ctx, &s)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if *d.Spec.Replicas != s.Spec.Replicas {
		d.Spec.Replicas = &s.Spec.Replicas
		return ctrl.Result{}, r.Update(ctx, &d)
	}
	status := metav1.ConditionFalse
	if d.Status.ReadyReplicas == s.Spec.Replicas {
		status = metav1.ConditionTrue
	}
	changed := meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: "Succeeded", ObservedGeneration: s.Generation,
	})
	if changed {
		return ctrl.Result{}, r.Status().Update(ctx, &s)
	}
	return ctrl.Result{}, nil
}

func (r *handWritten) createChildren(ctx context.Context, s *api.Site) error {
	for _, child := range []client.Object{deployment(s), service(s)} {
		if err := ctrl.SetControllerReference(s, child, r.Scheme()); err != nil {
			return err
		}
		if err := r.Create(ctx, child); err != nil {
			return err
		}
	}
	return nil
}

func deployment(s *api.Site) *appsv1.Deployment {
	labels := map[string]string{"app": "site", "site": s.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &s.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "site", Image: s.Spec.Image,
					Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
					Env:   []corev1.EnvVar{{Name: "SITE", Value: s.Name}},
				}}},
			},
		},
	}
}

func service(s *api.Site) *corev1.Service {
	labels := map[string]string{"app": "site", "site": s.Name}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, Labels: labels},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
}
