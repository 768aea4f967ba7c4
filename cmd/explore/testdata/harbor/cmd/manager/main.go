// The manager sets up all that it can.
package main

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/harbor/internal/controller"
	"example.com/harbor/internal/index"
)

func main() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		os.Exit(1)
	}
	ctx := ctrl.SetupSignalHandler()
	if index.Setup(ctx, mgr.GetFieldIndexer()) != nil || !index.ByZone(ctx, mgr.GetCache(), "east") || index.ByLabel(ctx, mgr.GetFieldIndexer(), os.Getenv("LABEL")) != nil {
		os.Exit(1)
	}
	if byName(ctx, mgr) != nil || setup(mgr) != nil || mgr.Start(ctx) != nil {
		os.Exit(1)
	}
}

func byName(ctx context.Context, mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
}

func setup(mgr ctrl.Manager) error {
	east := controller.NewShipReconciler(mgr, "east")
	if err := east.SetupWithManager(mgr); err != nil {
		return err
	}
	if err := east.SetupForAccounts(mgr, "east-accounts"); err != nil {
		return err
	}
	if err := controller.NewShipReconciler(mgr, "west").SetupForAccounts(mgr, "west-accounts"); err != nil {
		return err
	}
	for _, set := range []func() error{
		func() error { return controller.SetupCranes(mgr, "east") },
		func() error { return controller.SetupCranes(mgr, "west") },
		func() error { return controller.AddControllers(mgr, controller.Options{Lamps: 3}) },
		func() error { return (&controller.BuoyReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr) },
	} {
		if err := set(); err != nil {
			return err
		}
	}
	levels := map[string]int{os.Getenv("HARBOR"): 1}
	if err := (&controller.TideReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr, levels); err != nil {
		return err
	}
	var wave controller.WaveReconciler
	wave.Client = mgr.GetClient()
	highest := controller.Low
	if os.Getenv("STORM") != "" {
		highest = controller.High
	}
	return wave.SetupWithManager(mgr, highest)
}
