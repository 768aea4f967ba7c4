// Package controller has the reconcilers.
package controller

import (
	"context"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/shop/api/v1alpha1"
)

// Images are the images of the pods.
type Images struct{ Web, Cache string }

// ShopReconciler reconciles shops.
type ShopReconciler struct {
	client.Client
	Scheme   *runtime.Scheme
	Recorder events.EventRecorder
	Images   Images
	Timeout  time.Duration
	Prefix   string
	Region   string
}

// Reconcile applies a ConfigMap.
func (r *ShopReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	shop := &v1alpha1.Shop{}
	if err := r.Get(ctx, req.NamespacedName, shop); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: r.Prefix + shop.Name, Namespace: shop.Namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, config, func() error {
		config.Data = map[string]string{"size": strconv.Itoa(int(shop.Spec.Size))}
		return controllerutil.SetControllerReference(shop, config, r.Scheme)
	}); err != nil {
		return ctrl.Result{}, err
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Applied", ObservedGeneration: shop.Generation}
	if !meta.SetStatusCondition(&shop.Status.Conditions, ready) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, shop)
}

// SetupWithManager adds the reconciler to a manager.
func (r *ShopReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&v1alpha1.Shop{}).Owns(&corev1.ConfigMap{}).Complete(r)
}
