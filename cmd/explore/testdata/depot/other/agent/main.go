// This agent has the name of another one, and starts the same in the same way as the manager, without the index.
package main

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/depot/internal/controller"
)

func main() {
	mgr, _ := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	_ = controller.AddControllers(mgr)
	_ = mgr.Start(ctrl.SetupSignalHandler())
}
