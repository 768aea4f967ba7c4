package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// If CacheUnstructured is called, the manager's client reads unstructured objects from the cache.
func TestCacheUnstructured(t *testing.T) {
	tests := map[string]struct {
		reason string
		start  func(p *reconciletest.Process)
		cached bool
	}{
		"Default": {"Without the option they are read from the API server.", func(*reconciletest.Process) {}, false},
		"Cached":  {"With it they are read from the cache.", func(p *reconciletest.Process) { p.CacheUnstructured() }, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := of(func(p *reconciletest.Process) shopFunc {
				tc.start(p)
				return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
					one, all := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
					one.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
					all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
					c := p.Manager().GetClient()
					return ctrl.Result{}, firstOf(c.Get(ctx, client.ObjectKeyFromObject(source()), one), c.List(ctx, all))
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{source()}
			reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
				reconciled := 0
				env.Do(reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "more" }))
				for _, r := range env.RequestLog.Requests() {
					if r.Kind.Kind == "ConfigMap" {
						reconciled++
						assert.Equal(t, tc.cached, r.Cached, "%s: %s", r.String(), tc.reason)
					}
				}
				require.NotZero(t, reconciled)
			})
		})
	}
}
