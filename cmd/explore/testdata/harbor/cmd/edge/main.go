// The edge sets up one controller, as another main does.
package main

import (
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/harbor/internal/controller"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	beacons := new(controller.BeaconReconciler)
	beacons.Client = mgr.GetClient()
	if beacons.SetupWithManager(mgr) != nil || mgr.Start(ctrl.SetupSignalHandler()) != nil {
		os.Exit(1)
	}
}
