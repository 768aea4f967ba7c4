package ownedresources

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// change changes an object as a user does.
func change[T client.Object](t *testing.T, env *serverEnv, obj T, change func(T)) {
	t.Helper()
	require.Eventually(t, func() bool {
		require.NoError(t, env.Other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
		change(obj)
		err := env.Other.Update(t.Context(), obj)
		require.True(t, err == nil || apierrors.IsConflict(err), err)
		return err == nil
	}, controlplane.Patience, 10*time.Millisecond)
}

// setSpec changes the spec of the owner as a user does.
func (env *serverEnv) setSpec(t *testing.T, edit func(*ShopSpec)) {
	t.Helper()
	change(t, env, env.Owner, func(shop *Shop) { edit(&shop.Spec) })
}

func (env *serverEnv) setShards(t *testing.T, n int32) {
	t.Helper()
	env.setSpec(t, func(s *ShopSpec) { s.Shards = n })
}

// waitFor waits until an object exists and satisfies a function.
func waitFor[T client.Object](t *testing.T, env *serverEnv, obj T, is func(T) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := env.Other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		require.NoError(t, client.IgnoreNotFound(err))
		return err == nil && is(obj)
	}, controlplane.Patience, 10*time.Millisecond)
}

func (env *serverEnv) waitGone(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		require.Eventually(t, func() bool {
			err := env.Other.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
			require.NoError(t, client.IgnoreNotFound(err))
			return err != nil
		}, controlplane.Patience, 10*time.Millisecond, "%T %s", obj, obj.GetName())
	}
}

func exists[T client.Object](T) bool { return true }

// removeByForce deletes the owner and removes its finalizers.
func (env *serverEnv) removeByForce(t *testing.T) {
	t.Helper()
	change(t, env, env.Owner, func(shop *Shop) { shop.Finalizers = nil })
	require.NoError(t, env.Other.Delete(t.Context(), env.Owner, client.Preconditions{ResourceVersion: &env.Owner.ResourceVersion}))
}

// observedSet is a set that keeps its last error for the test.
type observedSet struct {
	*ChildSet[*Shop]
	mu   sync.Mutex
	last error
}

func (s *observedSet) Reconcile(ctx context.Context, c client.Client, obj *Shop) error {
	err := s.ChildSet.Reconcile(ctx, c, obj)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = err
	return err
}

func (s *observedSet) lastError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *observedSet) waitForError(t *testing.T, is func(error) bool) {
	t.Helper()
	require.Eventually(t, func() bool { return is(s.lastError()) }, controlplane.Patience, 10*time.Millisecond)
}

// start starts an operator with the set. Its cache covers these namespaces, or all if none is given. The returned function
// stops it.
func (env *serverEnv) start(t *testing.T, set *ChildSet[*Shop], namespaces ...string) (observed *observedSet, stop func()) {
	t.Helper()
	observed = &observedSet{ChildSet: set}
	return observed, env.startStep(t, reconcile.Named("children", observed), namespaces...)
}

// startStep starts an operator that reconciles the Shops with this step. Its cache covers these namespaces, or all if
// none is given. The returned function stops it.
func (env *serverEnv) startStep(t *testing.T, step reconcile.NamedStep[*Shop], namespaces ...string) (stop func()) {
	t.Helper()
	mgr := env.newManager(t, scheme.Scheme, namespaces...)
	ours := func(shop *Shop) bool { return shop.Namespace == env.Namespace }
	require.NoError(t, reconcile.For(mgr, step).WithoutStatus().WithFilter(ours).Complete())
	return startManager(t, mgr)
}

// newManager returns a manager whose cache covers these namespaces, or all if none is given. Its requests are
// counted.
func (env *serverEnv) newManager(t *testing.T, scheme *runtime.Scheme, namespaces ...string) ctrl.Manager {
	t.Helper()
	mgr, err := reconcile.NewManager(env.Requests.Wrap(env.Plane.Config()), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), Cache: reconcile.CacheOptions(namespaces...),
		Controller: config.Controller{SkipNameValidation: new(true)}, GracefulShutdownTimeout: new(controlplane.Patience),
	})
	require.NoError(t, err)
	return mgr
}

func startManager(t *testing.T, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

func namedConfigMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
