// The manager sets up all, and an index.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/depot/api"
	"example.com/depot/internal/controller"
	"example.com/depot/internal/index"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	ctx := ctrl.SetupSignalHandler()
	if api.AddToScheme(mgr.GetScheme()) != nil || index.Setup(ctx, mgr.GetFieldIndexer()) != nil || controller.AddControllers(mgr) != nil || controller.SetupNodes(mgr) != nil {
		os.Exit(1)
	}
	north := &controller.DepotReconciler{Client: mgr.GetClient(), Zone: "north"}
	if err := north.SetupWithManager(mgr); err != nil {
		os.Exit(1)
	}
	if mgr.Start(ctx) != nil {
		os.Exit(1)
	}
}
