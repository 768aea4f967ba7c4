//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestUsersOfBothVersions runs a scenario in which some users write v1alpha1 and others v1. The operator works on v1, and its conversion is called
// for the rest.
func TestUsersOfBothVersions(t *testing.T) {
	alpha := &cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "memcached-sample"}}
	alpha.Spec = cachev1alpha1.MemcachedSpec{Size: 2, MemoryMB: 100}
	editAlpha := func(spec func(s *cachev1alpha1.MemcachedSpec)) reconciletest.Action {
		return reconciletest.Change(alpha.DeepCopy(), func(m *cachev1alpha1.Memcached) { spec(&m.Spec) })
	}
	s := scenario(t, reconciletest.Options{Limit: 60},
		reconciletest.Create(alpha.DeepCopy()).Then(serves(2, "132Mi", "-m=100", "-o", "modern", "-v", "-c", "1024")),
		edit(func(s *cachev1.MemcachedSpec) { s.Memory = &cachev1.Quantity{Quantity: resource.MustParse("100M")} }).
			Then(serves(2, "127Mi", "-m=95", "-o", "modern", "-v", "-c", "1024")),
		editAlpha(func(s *cachev1alpha1.MemcachedSpec) { s.Size = 1 }).Then(both(serves(1, "127Mi"), reconciletest.Has(&cachev1.Memcached{
			ObjectMeta: named, Spec: cachev1.MemcachedSpec{Size: 1, Memory: &cachev1.Quantity{Quantity: resource.MustParse("100M")}},
		}))),
		editAlpha(func(s *cachev1alpha1.MemcachedSpec) { s.MemoryMB = 96 }).Then(serves(1, "128Mi", "-m=96", "-o", "modern", "-v", "-c", "1024")),
		reconciletest.Delete(alpha.DeepCopy()),
	)
	require.NoError(t, cachev1alpha1.AddToScheme(s.Scheme))
	s.Start = func(p *reconciletest.Process) error {
		mgr := p.Manager(controller.Cache())
		return errors.Join(controller.SetupWithManager(mgr), ctrl.NewWebhookManagedBy(mgr, &cachev1.Memcached{}).Complete())
	}
	reconciletest.Explore(t, s)
}

// both returns a check that two checks succeed.
func both(first, second func(env *reconciletest.Env) error) func(env *reconciletest.Env) error {
	return func(env *reconciletest.Env) error { return errors.Join(first(env), second(env)) }
}
