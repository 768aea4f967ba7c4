// The agent sets up two reconcilers of one type.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/depot/internal/controller"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	_ = mgr.GetFieldIndexer().IndexField(context.Background(), &corev1.Pod{}, "spec.nodeName", func(client.Object) []string { return nil })
	if err := (&controller.DepotReconciler{Client: mgr.GetClient(), Zone: "east"}).SetupForSecrets(mgr); err != nil {
		os.Exit(1)
	}
	if err := (&controller.DepotReconciler{Client: mgr.GetClient(), Zone: "west"}).SetupForSecrets(mgr); err != nil {
		os.Exit(1)
	}
	_ = mgr.Start(ctrl.SetupSignalHandler())
}
