// Package controllers has reconcilers that are set up in several ways.
package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/accounts/api"
	"example.com/accounts/internal/ledger"
)

// Limits are set by flags.
type Limits struct{ Accounts int }

// AccountReconciler has a constructor that returns an error.
type AccountReconciler struct {
	c      client.Client
	ledger *ledger.Ledger
}

// NewAccountReconciler returns a reconciler.
func NewAccountReconciler(c client.Client, clients kubernetes.Interface, l *ledger.Ledger, limits map[string]*Limits, names ...string) (*AccountReconciler, error) {
	return &AccountReconciler{c, l}, nil
}

func (r *AccountReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// SetupWithManager has further parameters.
func (r *AccountReconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Account{}).WithOptions(options).Complete(r)
}

// invoiceReconciler is set up by a function.
type invoiceReconciler struct{ client.Client }

func (r *invoiceReconciler) Reconcile(context.Context, reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

// SetupInvoices sets it up.
func SetupInvoices(mgr ctrl.Manager, l *ledger.Ledger) error {
	return ctrl.NewControllerManagedBy(mgr).For(&api.Invoice{}).Owns(&corev1.Pod{}).Complete(&invoiceReconciler{mgr.GetClient()})
}

// NodeReconciler is a literal in nobody's main.
type NodeReconciler struct {
	client.Client
	Clients *kubernetes.Clientset
	Limits  Limits
}

func (r *NodeReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

// SetupWithManager returns nothing.
func (r *NodeReconciler) SetupWithManager(mgr ctrl.Manager) {
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.Node{}).Complete(r); err != nil {
		panic(err)
	}
}

// AuditReconciler has no setup.
type AuditReconciler struct{ client.Client }

func (r *AuditReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	account := &api.Account{}
	return ctrl.Result{}, r.Get(ctx, req.NamespacedName, account)
}

// hidden cannot be reached from outside.
type hidden struct{ client.Client }

func (r *hidden) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}
