// Package controller has reconcilers that several programs set up.
package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/depot/api"
)

// DepotReconciler has two set-ups, and a main makes two of it.
type DepotReconciler struct {
	client.Client
	Zone string
}

func (r *DepotReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// SetupForSecrets is called by one main.
func (r *DepotReconciler) SetupForSecrets(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Secret{}).Complete(r)
}

// SetupWithManager is called by both.
func (r *DepotReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.index(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&api.Depot{}).Complete(r)
}

// index is within the set-up.
func (r *DepotReconciler) index(mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(context.Background(), &api.Depot{}, "spec.zone", func(client.Object) []string { return nil })
}

// crateReconciler and lorryReconciler are set up by AddControllers alone.
type crateReconciler struct{ client.Client }

func (r *crateReconciler) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

func (r *crateReconciler) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Crate{}).Complete(r)
}

func newCrates(mgr ctrl.Manager) *crateReconciler { return &crateReconciler{mgr.GetClient()} }

type lorryReconciler struct{ client.Client }

func (r *lorryReconciler) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

func addLorries(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Lorry{}).Complete(&lorryReconciler{mgr.GetClient()})
}

// AddControllers sets up both.
func AddControllers(mgr ctrl.Manager) error {
	if err := newCrates(mgr).setup(mgr); err != nil {
		return err
	}
	return addLorries(mgr)
}

// SetupNodes has no type with a method Reconcile.
func SetupNodes(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.Node{}).Complete(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, nil
	}))
}
