package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile"
)

// BuoyReconciler and BeaconReconciler have set-ups of their own, and SetupMarks, which nobody calls.
type BuoyReconciler struct{ client.Client }

func (r *BuoyReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func (r *BuoyReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("buoys").For(&corev1.ServiceAccount{}).Complete(r)
}

type BeaconReconciler struct{ client.Client }

func (r *BeaconReconciler) Reconcile(context.Context, ctrl.Request) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func (r *BeaconReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("beacons").For(&corev1.ServiceAccount{}).Complete(r)
}

// SetupMarks is called by nobody.
func SetupMarks(mgr ctrl.Manager) error {
	if err := (&BuoyReconciler{mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		return err
	}
	return (&BeaconReconciler{mgr.GetClient()}).SetupWithManager(mgr)
}

// Options are the options of AddControllers.
type Options struct{ Lamps int }

// AddControllers sets up two controllers without a type. Main does not call SetupTolls by itself.
func AddControllers(mgr ctrl.Manager, options Options) error {
	if err := setupLamps(mgr, options.Lamps); err != nil {
		return err
	}
	return SetupTolls(mgr)
}

func setupLamps(mgr ctrl.Manager, lamps int) error {
	return ctrl.NewControllerManagedBy(mgr).Named("lamps").For(&corev1.Node{}).Complete(ctrlreconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, nil
	}))
}

// SetupTolls has steps of the library.
func SetupTolls(mgr ctrl.Manager) error {
	return reconcile.For(mgr, reconcile.Named("toll", reconcile.Func(func(context.Context, client.Client, *corev1.Namespace) error { return nil }))).WithoutStatus().Complete()
}
