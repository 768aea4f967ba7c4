//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// soundSecrets are scenarios whose operators write times into a Secret, or send requests that change nothing.
var soundSecrets = map[string]soundScenario{
	"TimesInASecret": {
		reason: "a time in a Secret's data is a time, in a text as alone",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					secret := &corev1.Secret{}
					secret.Namespace, secret.Name = s.Namespace, s.Name
					err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
					if !apierrors.IsNotFound(err) {
						return ctrl.Result{}, err
					}
					now := time.Now().UTC().Format(time.RFC3339)
					secret.Data = map[string][]byte{"issued": []byte(now), "settings": []byte("issued: " + now + "\nby: shop\n")}
					if err := controllerutil.SetControllerReference(s, secret, c.Scheme()); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, c.Create(ctx, secret)
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
	},
	"DeletesAsADryRun": {
		reason: "a deletion that is only asked for deletes nothing",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					child := owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})
					if err := c.Delete(ctx, config(child.Name), client.DryRunAll); client.IgnoreNotFound(err) != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, ensure(ctx, c, s, child)
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
	},
}
