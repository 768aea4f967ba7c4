package bench

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/bench/api"
)

// applying applies the children on the server in every pass.
type applying struct{ client.Client }

func (r *applying) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s api.Site
	if err := r.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	options := []client.ApplyOption{client.FieldOwner("site-operator"), client.ForceOwnership}
	if err := r.Apply(ctx, deploymentConfiguration(&s), options...); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.Apply(ctx, serviceConfiguration(&s), options...); err != nil {
		return ctrl.Result{}, err
	}
	var d appsv1.Deployment
	if err := r.Get(ctx, req.NamespacedName, &d); err != nil && !apierrors.IsNotFound(err) { // the cache may be behind
		return ctrl.Result{}, err
	}
	if setReady(&s, &d) {
		return ctrl.Result{}, r.Status().Update(ctx, &s)
	}
	return ctrl.Result{}, nil
}

func deploymentConfiguration(s *api.Site) *appsv1ac.DeploymentApplyConfiguration {
	labels := siteLabels(s)
	return appsv1ac.Deployment(s.Name, s.Namespace).WithLabels(labels).WithOwnerReferences(ownerReference(s)).
		WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(s.Spec.Replicas).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).
				WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().
					WithName("site").WithImage(s.Spec.Image).
					WithPorts(corev1ac.ContainerPort().WithName("http").WithContainerPort(8080)).
					WithEnv(corev1ac.EnvVar().WithName("SITE").WithValue(s.Name))))))
}

func serviceConfiguration(s *api.Site) *corev1ac.ServiceApplyConfiguration {
	desired := service(s)
	return corev1ac.Service(s.Name, s.Namespace).WithLabels(desired.Labels).WithOwnerReferences(ownerReference(s)).
		WithSpec(corev1ac.ServiceSpec().
			WithClusterIP(desired.Spec.ClusterIP).
			WithSelector(desired.Spec.Selector).
			WithPorts(corev1ac.ServicePort().WithName("http").WithPort(80)))
}

func ownerReference(s *api.Site) *metav1ac.OwnerReferenceApplyConfiguration {
	return metav1ac.OwnerReference().WithAPIVersion(api.GroupVersion.String()).WithKind("Site").
		WithName(s.Name).WithUID(s.UID).WithController(true).WithBlockOwnerDeletion(true)
}
