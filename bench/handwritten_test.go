package bench

import (
	"context"
	"slices"

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
	return r.reconcile(ctx, req, false)
}

// handWrittenWithPods lists the pods as well, as the last part of the tutorial does.
type handWrittenWithPods struct{ handWritten }

func (r *handWrittenWithPods) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.reconcile(ctx, req, true)
}

func (r *handWritten) reconcile(ctx context.Context, req ctrl.Request, listPods bool) (ctrl.Result, error) {
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
	changed := setReady(&s, &d)
	if listPods {
		names, err := r.pods(ctx, &s)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !slices.Equal(names, s.Status.Nodes) {
			s.Status.Nodes = names
			changed = true
		}
	}
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

func (r *handWritten) pods(ctx context.Context, s *api.Site) (names []string, err error) {
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.InNamespace(s.Namespace), client.MatchingFields{siteIndex: s.Name}); err != nil {
		return nil, err
	}
	for _, pod := range pods.Items {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	return names, nil
}

// setReady sets the condition Ready of a site, and reports whether it has changed.
func setReady(s *api.Site, d *appsv1.Deployment) (changed bool) {
	status := metav1.ConditionFalse
	if d.Status.ReadyReplicas == s.Spec.Replicas {
		status = metav1.ConditionTrue
	}
	return setCondition(s, status)
}

func setCondition(s *api.Site, status metav1.ConditionStatus) (changed bool) {
	return meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: "Succeeded", ObservedGeneration: s.Generation,
	})
}
