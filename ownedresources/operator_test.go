package ownedresources

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

type budget = policyv1.PodDisruptionBudget

// operatorEnv has an owner in one namespace of a control plane with the real garbage collector and the real namespace
// controller, and another namespace.
type operatorEnv struct {
	client           client.Client
	namespace, other string
	owner            *budget
}

func newOperatorEnv(t *testing.T) *operatorEnv {
	t.Helper()
	cp := corpusPlane(t)
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	env := &operatorEnv{client: c, namespace: controlplane.Namespace(t, cp), other: controlplane.Namespace(t, cp)}
	env.owner = env.newOwner()
	return env
}

// newOwner returns an owner that does not exist yet. Its minAvailable is 1.
func (env *operatorEnv) newOwner() *budget {
	return &budget{
		ObjectMeta: metav1.ObjectMeta{Namespace: env.namespace, Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))},
	}
}

func (env *operatorEnv) create(t *testing.T, obj client.Object) {
	t.Helper()
	require.NoError(t, env.client.Create(t.Context(), obj))
}

// change changes an object as a user does.
func change[T client.Object](t *testing.T, env *operatorEnv, obj T, change func(T)) {
	t.Helper()
	require.Eventually(t, func() bool {
		require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
		change(obj)
		err := env.client.Update(t.Context(), obj)
		require.True(t, err == nil || apierrors.IsConflict(err), err)
		return err == nil
	}, controlplane.Patience, 10*time.Millisecond)
}

// setAvailable changes the owner's minAvailable.
func (env *operatorEnv) setAvailable(t *testing.T, n int32) {
	t.Helper()
	change(t, env, env.owner, func(b *budget) { b.Spec.MinAvailable = new(intstr.FromInt32(n)) })
}

// waitFor waits until an object exists and satisfies a function.
func waitFor[T client.Object](t *testing.T, env *operatorEnv, obj T, is func(T) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		err := env.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		require.NoError(t, client.IgnoreNotFound(err))
		return err == nil && is(obj)
	}, controlplane.Patience, 10*time.Millisecond)
}

func (env *operatorEnv) waitGone(t *testing.T, objs ...client.Object) {
	t.Helper()
	for _, obj := range objs {
		require.Eventually(t, func() bool {
			err := env.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
			require.NoError(t, client.IgnoreNotFound(err))
			return err != nil
		}, controlplane.Patience, 10*time.Millisecond, "%T %s", obj, obj.GetName())
	}
}

func exists[T client.Object](T) bool { return true }

// removeByForce deletes the owner together with its finalizers.
func (env *operatorEnv) removeByForce(t *testing.T) {
	t.Helper()
	change(t, env, env.owner, func(b *budget) { b.Finalizers = nil })
	require.NoError(t, env.client.Delete(t.Context(), env.owner, client.Preconditions{ResourceVersion: &env.owner.ResourceVersion}))
}

// observedSet is a set whose last error a test can see.
type observedSet struct {
	*ChildSet[*budget]
	mu   sync.Mutex
	last error
}

func (s *observedSet) Reconcile(ctx context.Context, c client.Client, obj *budget) error {
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

// start starts an operator of the set, whose cache covers these namespaces, or all. The function that it returns stops it.
func (env *operatorEnv) start(t *testing.T, set *ChildSet[*budget], namespaces ...string) (observed *observedSet, stop func()) {
	t.Helper()
	return env.startNamed(t, "children", set, nil, namespaces...)
}

// startNamed is start with the name and the options of the step.
func (env *operatorEnv) startNamed(t *testing.T, name string, set *ChildSet[*budget], options []reconcile.StepOption, namespaces ...string) (observed *observedSet, stop func()) {
	t.Helper()
	mgr, err := reconcile.NewManager(corpusPlane(t).Config(), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Logger: logr.Discard(), Cache: reconcile.CacheOptions(namespaces...),
		Controller: config.Controller{SkipNameValidation: new(true)}, GracefulShutdownTimeout: new(controlplane.Patience),
	})
	require.NoError(t, err)
	observed = &observedSet{ChildSet: set}
	ours := func(b *budget) bool { return b.Namespace == env.namespace }
	require.NoError(t, reconcile.For(mgr, reconcile.Named(name, observed, options...)).WithoutStatus().WithFilter(ours).Complete())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(stop)
	return observed, stop
}

func namedConfigMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
