package reconcile_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/internal/requests"
	"github.com/opblocks/opblocks/ownedresources"
	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// controlPlane runs an API server without controllers. PodDisruptionBudgets are reconciled only by the tests.
var controlPlane = controlplane.Shared(controlplane.Options{})

// The tests inside the package use these types too.
type (
	budget   = reconcile.Budget
	cleaning = reconcile.Cleaning
)

const (
	eventually = controlplane.Patience
	often      = 10 * time.Millisecond
)

// env is a real API server with a manager. It counts the requests of the manager.
type env struct {
	client    client.Client // another client, which is not the operator's
	mgr       ctrl.Manager
	count     requests.Count
	namespace string
}

func newEnv(t *testing.T) *env {
	t.Helper()
	return newEnvWith(t, rest.CopyConfig)
}

// newEnvWith returns an env whose manager has the configuration that change returns.
func newEnvWith(t *testing.T, change func(*rest.Config) *rest.Config) *env {
	t.Helper()
	cp := controlPlane(t)
	w := &env{namespace: controlplane.Namespace(t, cp)}
	var err error
	w.client, err = client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	w.mgr, err = ctrl.NewManager(w.count.Wrap(change(cp.Config())), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, GracefulShutdownTimeout: new(controlplane.Patience),
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{w.namespace: {}}},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	return w
}

// run starts the manager, and stops it before the test ends.
func (w *env) run(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	require.True(t, w.mgr.GetCache().WaitForCacheSync(ctx))
}

func (w *env) create(t *testing.T, name string) *budget {
	t.Helper()
	b := &budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	require.NoError(t, w.client.Create(t.Context(), b))
	return b
}

func (w *env) waitFor(t *testing.T, b *budget, what string, is func(*budget) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		return w.client.Get(t.Context(), client.ObjectKeyFromObject(b), b) == nil && is(b)
	}, eventually, often, what)
}

func (w *env) isGone(t *testing.T, obj client.Object) {
	t.Helper()
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(w.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	}, eventually, often, "gone")
}

func (w *env) pause(t *testing.T, b *budget, patch string) {
	t.Helper()
	data := `{"metadata":{"annotations":{"opblocks.dev/paused":` + patch + `}}}`
	require.NoError(t, w.client.Patch(t.Context(), b, client.RawPatch(types.MergePatchType, []byte(data))))
}

func (w *env) deployment(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	d := ownedresources.NewDeployment(&budget{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}, nil,
		corev1.Container{Name: "web", Image: "nginx:1.27"})
	require.NoError(t, w.client.Create(t.Context(), d))
	return d
}

func isReady(b *budget) bool { return conditions.IsTrue(b.Status.Conditions, "Ready") }

func isPaused(b *budget) bool { return conditions.IsTrue(b.Status.Conditions, "Paused") }

func settings(b *budget) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-settings"},
		Data:       map[string]string{"for": b.Name},
	}
}

func more(b *budget) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace, Name: b.Name + "-more"}}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func metadata(kind string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return m
}

// account creates a ServiceAccount and returns a configuration for it. may has its permissions in the namespace, each as
// "verb,verb resource.group".
func account(t *testing.T, namespace string, may ...string) *rest.Config {
	t.Helper()
	cp := controlPlane(t)
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	var rules []rbacv1.PolicyRule
	for _, m := range may {
		verbs, what, _ := strings.Cut(m, " ")
		resource, group, _ := strings.Cut(what, ".")
		rules = append(rules, rbacv1.PolicyRule{Verbs: strings.Split(verbs, ","), Resources: []string{resource}, APIGroups: []string{group}})
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "operator"}
	require.NoError(t, c.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}))
	require.NoError(t, c.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}))
	require.NoError(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "operator"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "operator"}},
	}))
	user, err := cp.ServiceAccountConfig(t.Context(), namespace, "operator")
	require.NoError(t, err)
	user.QPS = -1
	// The API server's authorizer is a little behind, so wait until it knows the roles.
	as, err := client.New(user, client.Options{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return as.List(t.Context(), &corev1.ServiceAccountList{}, client.InNamespace(namespace)) == nil
	}, eventually, often, "the role is known")
	return user
}

const knowsItsRole = "list serviceaccounts"

func options(namespaces ...string) ctrl.Options {
	o := ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(controlplane.Patience),
	}
	if len(namespaces) > 0 {
		o.Cache.DefaultNamespaces = map[string]cache.Config{}
	}
	for _, n := range namespaces {
		o.Cache.DefaultNamespaces[n] = cache.Config{}
	}
	return o
}
