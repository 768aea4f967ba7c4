package reconciletest_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// If an operator changes a cached object by mistake, only its own process sees the change. The runs with faults reuse objects of the run
// without faults. They must not see changes from that run: here they would never create the second ConfigMap.
func TestChangedCacheStaysInTheProcess(t *testing.T) {
	reconciletest.Explore(t, of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			is := &corev1.ConfigMap{}
			err := c.Get(ctx, client.ObjectKeyFromObject(s), is, client.UnsafeDisableDeepCopy)
			if apierrors.IsNotFound(err) {
				return ctrl.Result{}, c.Create(ctx, owned(c, s, s.Name, map[string]string{"a": "1"}))
			}
			if err != nil || is.Data["seen"] != "" {
				return ctrl.Result{}, err
			}
			if err := c.Create(ctx, owned(c, s, "second", nil)); err != nil && !apierrors.IsAlreadyExists(err) {
				return ctrl.Result{}, err
			}
			is.Data["seen"] = "yes"
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop())))
}

// A transformation of the cache does not change the object on the API server, even if the operator reads the cache without a copy.
func TestTransformationChangesOnlyTheCache(t *testing.T) {
	withoutLarge := cache.Options{DefaultTransform: func(obj any) (any, error) {
		if m, ok := obj.(*corev1.ConfigMap); ok {
			delete(m.Data, "large")
		}
		return obj, nil
	}}
	reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"testdata"},
		Start: func(p *reconciletest.Process) error {
			b := ctrl.NewControllerManagedBy(p.Manager(withoutLarge)).Named("shop").For(&Shop{}).Owns(&corev1.ConfigMap{})
			return b.Complete(&shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				is := &corev1.ConfigMap{}
				err := c.Get(ctx, client.ObjectKeyFromObject(s), is, client.UnsafeDisableDeepCopy)
				switch {
				case apierrors.IsNotFound(err):
					return ctrl.Result{}, c.Create(ctx, owned(c, s, s.Name, map[string]string{"large": "1"}))
				case err == nil && is.Data["large"] != "":
					err = errors.New("the cache has what it leaves out")
				}
				return ctrl.Result{}, err
			}})
		},
		Actions: []reconciletest.Action{reconciletest.Create(shop())},
		Finally: func(env *reconciletest.Env) error {
			is := config("web")
			if err := env.Get(context.Background(), client.ObjectKeyFromObject(is), is); err != nil {
				return err
			}
			if is.Data["large"] == "" {
				return errors.New("the API server has lost what only the cache leaves out")
			}
			return nil
		},
	})
}
