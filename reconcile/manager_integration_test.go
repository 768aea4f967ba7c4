package reconcile_test

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// relay is a kind whose CustomResourceDefinition is not installed.
type relay = reconcile.Relay

func TestManagerWithoutKind(t *testing.T) {
	const says = `the cache cannot start: no matches for kind "Relay" in version "test.opblocks.dev/v1": install its CustomResourceDefinition first (make install)`
	newOne := func() ctrl.Manager {
		o := options()
		o.Scheme = reconcile.RelayScheme()
		mgr, err := reconcile.NewManager(controlPlane(t).Config(), o)
		require.NoError(t, err)
		return mgr
	}
	mgr := newOne()
	require.NoError(t, reconcile.For(mgr, reconcile.Named("one", reconcile.Func(func(context.Context, client.Client, *relay) error { return nil }))).Complete())
	err := ended(t, t.Context(), mgr)
	require.EqualError(t, err, says)
	require.True(t, meta.IsNoMatchError(err))
	require.EqualError(t, newOne().GetFieldIndexer().IndexField(t.Context(), &relay{}, "any", func(client.Object) []string { return nil }), says)
}

// managerWithIndex returns a manager with an index. The index starts an informer before the manager starts, and the
// manager waits for that informer.
func managerWithIndex(t *testing.T) ctrl.Manager {
	t.Helper()
	cp := controlPlane(t)
	nobody := cp.ConfigFor("nobody")
	mgr, err := reconcile.NewManager(nobody, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(controlplane.Patience),
	})
	require.NoError(t, err)
	return mgr
}

func index(t *testing.T, mgr ctrl.Manager) {
	t.Helper()
	require.NoError(t, mgr.GetFieldIndexer().IndexField(t.Context(), &corev1.Secret{}, "any", func(client.Object) []string { return nil }))
}

func ended(t *testing.T, ctx context.Context, mgr ctrl.Manager) error { //nolint:revive // t comes first in a test
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	select {
	case err := <-done:
		return err
	case <-time.After(eventually):
		t.Fatal("it does not end")
		return nil
	}
}

func TestManagerWithoutListPermission(t *testing.T) {
	mgr := managerWithIndex(t)
	index(t, mgr)
	err := ended(t, t.Context(), mgr)
	require.ErrorContains(t, err, "the cache cannot start: ")
	require.ErrorContains(t, err, `resource "secrets" in API group "" at the cluster scope`)
	require.ErrorContains(t, err, "add the permission to the operator's role")
}

func TestManagerStoppedBeforeStart(t *testing.T) {
	cp := controlPlane(t)
	unreachable := cp.Config()
	mgr, err := reconcile.NewManager(unreachable, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(controlplane.Patience),
	})
	require.NoError(t, err)
	index(t, mgr)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	require.NoError(t, ended(t, ctx, mgr))
}

// The API server cannot be reached, and the process is stopped.
func TestManagerStoppedBeforeCacheStarts(t *testing.T) {
	user := controlPlane(t).Config()
	var reached atomic.Bool
	user.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/poddisruptionbudgets") {
				reached.Store(true)
				return nil, errors.New("no route to host")
			}
			return next.RoundTrip(r)
		})
	})
	mgr, err := reconcile.NewManager(user, options())
	require.NoError(t, err)
	require.NoError(t, reconcile.For[*budget](mgr, reconcile.Named("one", step(nil))).Complete())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	require.Eventually(t, reached.Load, eventually, often)
	stop()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(eventually):
		t.Fatal("it goes on")
	}
}

func TestNewManagerError(t *testing.T) {
	mgr, err := reconcile.NewManager(&rest.Config{Host: "not an address::"}, options())
	require.Error(t, err)
	require.Nil(t, mgr)
}

func TestManagerWithoutReadPermission(t *testing.T) {
	const budgets = "poddisruptionbudgets.policy"
	everything := []string{"get,list,watch " + budgets, "get,list,watch configmaps", "get,list,watch secrets"}
	tests := map[string]struct {
		reason  string
		may     []string
		everyNS bool // the cache holds the objects of all namespaces
		says    string
		starts  bool
	}{
		"AllThere":        {reason: "with all permissions the manager starts", may: everything, starts: true},
		"Nothing":         {reason: "the first refused request ends the start", says: "cannot"},
		"NoList":          {reason: "the error names the verb, the resource and the namespace", may: []string{"get " + budgets, "get,list,watch configmaps", "get,list,watch secrets"}, says: `resource "poddisruptionbudgets" in API group "policy" in the namespace`},
		"NoWatch":         {reason: "without the verb watch the manager would start, and see no change", may: []string{"get,list " + budgets, "get,list,watch configmaps", "get,list,watch secrets"}, says: `cannot watch resource "poddisruptionbudgets" in API group "policy" in the namespace`},
		"OfAChild":        {reason: "the kind of a child is watched", may: []string{"get,list,watch " + budgets, "get configmaps", "get,list,watch secrets"}, says: `resource "configmaps" in API group ""`},
		"OfAReference":    {reason: "a referenced kind is watched by its metadata", may: []string{"get,list,watch " + budgets, "get,list,watch configmaps", "get,list secrets"}, says: `cannot watch resource "secrets" in API group ""`},
		"InAllNamespaces": {reason: "a cache of all namespaces needs a ClusterRole", may: everything, everyNS: true, says: "at the cluster scope"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := controlplane.Namespace(t, controlPlane(t))
			o := options(namespace)
			if tc.everyNS {
				o = options()
			}
			mgr, err := reconcile.NewManager(account(t, namespace, append(tc.may, knowsItsRole)...), o)
			require.NoError(t, err)
			require.NoError(t, reconcile.For[*budget](mgr,
				reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings))),
				reconcile.Named("secret", step(nil)).Reads(&corev1.Secret{}, func(*budget) []types.NamespacedName { return nil }),
			).Complete())

			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- mgr.Start(ctx) }()
			if tc.starts {
				require.True(t, mgr.GetCache().WaitForCacheSync(ctx))
				stop()
				require.NoError(t, <-done, tc.reason)
				return
			}
			select {
			case err := <-done:
				require.ErrorContains(t, err, "the cache cannot start: ", tc.reason)
				require.ErrorContains(t, err, tc.says, tc.reason)
				require.ErrorContains(t, err, "system:serviceaccount:"+namespace+":operator")
				require.ErrorContains(t, err, "add the permission to the operator's role")
				require.NotContains(t, err.Error(), "\n", "one sentence")
				require.True(t, apierrors.IsForbidden(err))
			case <-time.After(eventually):
				t.Fatal("the manager still runs: " + tc.reason)
			}
			require.Eventually(t, func() bool { return !strings.Contains(goroutines(), "reconcile.(*manager)") }, eventually, often, "no goroutine of the manager is left")
		})
	}
}

func goroutines() string {
	buffer := make([]byte, 1<<22)
	return string(buffer[:runtime.Stack(buffer, true)])
}

// If the permission to write is missing, a condition names it. After the permission is added, the object recovers
// without a restart.
func TestMissingWritePermission(t *testing.T) {
	const reads = "get,list,watch"
	tests := map[string]struct {
		reason string
		may    []string
		says   string
	}{
		"Finalizer": {
			reason: "a finalizer is added by a patch of the object", may: []string{"create configmaps"},
			says: `cannot patch resource "poddisruptionbudgets" in API group "policy"`,
		},
		"Child": {
			reason: "a child is created", may: []string{"patch poddisruptionbudgets.policy"},
			says: `cannot create resource "configmaps" in API group ""`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := controlplane.Namespace(t, controlPlane(t))
			admin, err := client.New(controlPlane(t).Config(), client.Options{})
			require.NoError(t, err)
			mgr, err := reconcile.NewManager(account(t, namespace, append(tc.may, knowsItsRole,
				reads+" poddisruptionbudgets.policy", reads+" configmaps", "patch poddisruptionbudgets/status.policy")...), options(namespace))
			require.NoError(t, err)
			require.NoError(t, reconcile.For[*budget](mgr,
				reconcile.Named("account", cleaning{step(nil), step(nil).Reconcile}).Finalizer("example.com/account"),
				reconcile.Named("settings", ownedresources.Ensure(ownedresources.Build(settings)))).Complete())
			w := &env{client: admin, mgr: mgr, namespace: namespace}
			w.run(t)
			b := w.create(t, "a")
			w.waitFor(t, b, "stalled", func(b *budget) bool { return conditions.IsTrue(b.Status.Conditions, "Stalled") })
			ready, _ := conditions.Get(b.Status.Conditions, "Ready")
			require.Equal(t, "Forbidden", ready.Reason, tc.reason)
			require.Contains(t, ready.Message, tc.says, tc.reason)

			role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "operator"}}
			require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(role), role))
			role.Rules = append(role.Rules, rbacv1.PolicyRule{Verbs: []string{"*"}, Resources: []string{"*"}, APIGroups: []string{"*"}})
			require.NoError(t, admin.Update(t.Context(), role))
			require.Eventually(t, func() bool { // an event comes before the ten minutes are over
				b.Labels = map[string]string{"touched": time.Now().Format("150405.000")}
				_ = admin.Update(t.Context(), b)
				return admin.Get(t.Context(), client.ObjectKeyFromObject(b), b) == nil && isReady(b)
			}, eventually, 100*time.Millisecond, "healed")
			require.NoError(t, admin.Delete(t.Context(), b))
			w.isGone(t, b)
		})
	}
}
