package reconcile_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// password must not appear in any log.
const password = "correct-horse-battery"

// applyPassword sends a Secret with the password, and reads it.
func applyPassword(ctx context.Context, c client.Client, namespace string) error {
	body := `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"` + namespace + `","name":"web"},"stringData":{"password":"` + password + `"}}`
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	return c.Patch(ctx, secret, client.RawPatch(types.ApplyPatchType, []byte(body)), client.FieldOwner("shop"), client.ForceOwnership)
}

// At level 8, client-go logs the bodies of requests, with the logger of the context. The loggers of a manager and of passes log nothing
// at that level.
func TestNoBodyOfARequestIsLogged(t *testing.T) {
	var mu sync.Mutex
	var log strings.Builder
	verbose := funcr.New(func(prefix, line string) {
		mu.Lock()
		defer mu.Unlock()
		log.WriteString(prefix + line + "\n")
	}, funcr.Options{Verbosity: 10})
	namespace := controlplane.Namespace(t, controlPlane(t))
	c, err := client.New(controlPlane(t).Config(), client.Options{})
	require.NoError(t, err)
	tests := map[string]struct {
		reason string
		logged bool
		do     func(t *testing.T) error
	}{
		"the logger itself": {"The test sees what client-go logs.", true, func(t *testing.T) error {
			return applyPassword(logr.NewContext(t.Context(), verbose), c, namespace)
		}},
		"a manager's logger": {"Controllers put it into the contexts of their reconciles.", false, func(t *testing.T) error {
			o := options(namespace)
			o.Logger = verbose
			mgr, err := reconcile.NewManager(controlPlane(t).Config(), o)
			require.NoError(t, err)
			return applyPassword(logr.NewContext(t.Context(), mgr.GetLogger().WithValues("controller", "shop")), mgr.GetClient(), namespace)
		}},
		"a pass": {"Its manager may be another one.", false, func(t *testing.T) error {
			b := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
			require.NoError(t, c.Create(t.Context(), b))
			r := reconcile.New(c, reconcile.Named("apply", reconcile.Func(func(ctx context.Context, c client.Client, _ *budget) error {
				return applyPassword(ctx, c, namespace)
			})))
			_, err := r.Reconcile(logr.NewContext(t.Context(), verbose), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
			return err
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			log.Reset()
			require.NoError(t, tc.do(t))
			require.Equal(t, tc.logged, strings.Contains(log.String(), password), tc.reason)
		})
	}
}
