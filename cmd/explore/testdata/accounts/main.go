// The manager of the operator.
package main

import (
	"os"

	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"example.com/accounts/api"
	"example.com/accounts/controllers"
	"example.com/accounts/internal/ledger"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	_ = api.AddToScheme(mgr.GetScheme())
	clients, err := kubernetes.NewForConfig(mgr.GetConfig())
	if err != nil {
		os.Exit(1)
	}
	book, err := ledger.Open("book")
	if err != nil {
		os.Exit(1)
	}
	limits := map[string]*controllers.Limits{os.Getenv("NAME"): {Accounts: 1}}
	reconciler, err := controllers.NewAccountReconciler(mgr.GetClient(), clients, book, limits)
	if err != nil {
		os.Exit(1)
	}
	ctx := ctrl.SetupSignalHandler()
	if err := reconciler.SetupWithManager(ctx, mgr, controller.Options{MaxConcurrentReconciles: 2}); err != nil {
		os.Exit(1)
	}
	if err := controllers.SetupInvoices(mgr, book); err != nil {
		os.Exit(1)
	}
	if err := ctrl.NewWebhookManagedBy(mgr, &api.Account{}).Complete(); err != nil {
		os.Exit(1)
	}
	if err := mgr.Start(ctx); err != nil {
		os.Exit(1)
	}
}
