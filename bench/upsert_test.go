package bench

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/bench/api"
)

// upserting writes the children by controllerutil.CreateOrUpdate or CreateOrPatch.
type upserting struct {
	client.Client
	upsert     func(context.Context, client.Client, client.Object, controllerutil.MutateFn) (controllerutil.OperationResult, error)
	deployment func(live, desired *appsv1.Deployment)
	service    func(live, desired *corev1.Service)
}

func newUpserting(c client.Client, variant string) *upserting {
	r := &upserting{Client: c, upsert: controllerutil.CreateOrUpdate, deployment: mergeDeployment, service: mergeService}
	switch variant {
	case createOrPatch:
		r.upsert = controllerutil.CreateOrPatch
	case wholeSpec:
		r.deployment = func(live, desired *appsv1.Deployment) { live.Labels, live.Spec = desired.Labels, desired.Spec }
		r.service = func(live, desired *corev1.Service) { live.Labels, live.Spec = desired.Labels, desired.Spec }
	}
	return r
}

func (r *upserting) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var s api.Site
	if err := r.Get(ctx, req.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	if _, err := r.upsert(ctx, r.Client, d, func() error {
		r.deployment(d, deployment(&s))
		return ctrl.SetControllerReference(&s, d, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
	if _, err := r.upsert(ctx, r.Client, svc, func() error {
		r.service(svc, service(&s))
		return ctrl.SetControllerReference(&s, svc, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	if setReady(&s, d) {
		return ctrl.Result{}, r.Status().Update(ctx, &s)
	}
	return ctrl.Result{}, nil
}

// mergeDeployment sets each desired field on the live object. Fields that the API server sets by default stay.
func mergeDeployment(live, desired *appsv1.Deployment) {
	live.Labels, live.Spec.Replicas = desired.Labels, desired.Spec.Replicas
	if live.Spec.Selector == nil {
		live.Spec.Selector, live.Spec.Template = desired.Spec.Selector, desired.Spec.Template
	}
	live.Spec.Template.Labels = desired.Spec.Template.Labels
	is, wanted := &live.Spec.Template.Spec.Containers[0], desired.Spec.Template.Spec.Containers[0]
	is.Name, is.Image, is.Env = wanted.Name, wanted.Image, wanted.Env
	if len(is.Ports) != 1 || is.Ports[0].ContainerPort != wanted.Ports[0].ContainerPort {
		is.Ports = wanted.Ports
	}
}

func mergeService(live, desired *corev1.Service) {
	live.Labels, live.Spec.Selector = desired.Labels, desired.Spec.Selector
	if live.Spec.ClusterIP == "" {
		live.Spec.ClusterIP = desired.Spec.ClusterIP
	}
	if len(live.Spec.Ports) != 1 || live.Spec.Ports[0].Port != desired.Spec.Ports[0].Port {
		live.Spec.Ports = desired.Spec.Ports
	}
}
