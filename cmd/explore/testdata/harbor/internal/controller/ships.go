// Package controller has reconcilers that main sets up in several ways.
package controller

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"example.com/harbor/internal/berth"
	"example.com/harbor/internal/index"
)

// ShipReconciler has a constructor that takes the manager, and two set-ups. Main makes two of it.
type ShipReconciler struct {
	client.Client
	zone string
}

// NewShipReconciler is not a set-up.
func NewShipReconciler(mgr ctrl.Manager, zone string) *ShipReconciler {
	return &ShipReconciler{mgr.GetClient(), zone}
}

// Reconcile applies a ServiceAccount. It needs the indexes.
func (r *ShipReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ship := &corev1.ConfigMap{}
	if err := r.Get(ctx, req.NamespacedName, ship); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, field := range []string{index.Node, index.Host, index.Zone, index.Phase} {
		if err := r.List(ctx, &corev1.PodList{}, client.MatchingFields{field: r.zone}); err != nil {
			return ctrl.Result{}, err
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: r.zone + "-" + ship.Name, Namespace: ship.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, account, func() error { return controllerutil.SetControllerReference(ship, account, r.Scheme()) })
	return ctrl.Result{}, err
}

// SetupWithManager is called for one of the two.
func (r *ShipReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("ship-" + r.zone).For(&corev1.ConfigMap{}).Owns(&corev1.ServiceAccount{}).Complete(r)
}

// SetupForAccounts is called for both.
func (r *ShipReconciler) SetupForAccounts(mgr ctrl.Manager, name string) error {
	return ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.ServiceAccount{}).Watches(&corev1.ConfigMap{}, &handler.EnqueueRequestForObject{}).Complete(r)
}

// craneReconciler is set up by a function, which main calls twice.
type craneReconciler struct{ client.Client }

func (r *craneReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// SetupCranes sets up what berth needs. No test must call that once more.
func SetupCranes(mgr ctrl.Manager, name string) error {
	if name == "east" {
		if err := berth.Setup(context.Background(), mgr); err != nil {
			return err
		}
	}
	return ctrl.NewControllerManagedBy(mgr).Named(name).For(&corev1.Secret{}).Complete(&craneReconciler{mgr.GetClient()})
}

// TideReconciler has a set-up that needs a value of main.
type TideReconciler struct{ client.Client }

func (r *TideReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// SetupWithManager has an argument that cannot be filled, and a type that the test can write.
func (r *TideReconciler) SetupWithManager(mgr ctrl.Manager, levels map[string]int) error {
	return ctrl.NewControllerManagedBy(mgr).Named("tides").For(&corev1.Secret{}).Complete(r)
}

// level is a type that the test cannot write.
type level int

// The levels.
const (
	Low level = iota
	High
)

// WaveReconciler has a set-up that the test cannot call.
type WaveReconciler struct{ client.Client }

func (r *WaveReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, errors.New("nobody sets it up")
}

// SetupWithManager is called by main, with a variable.
func (r *WaveReconciler) SetupWithManager(mgr ctrl.Manager, highest level) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(r)
}
