//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	cachev1alpha1 "github.com/opblocks/opblocks/examples/memcached/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestSurvivesEveryFault runs a scenario that covers everything that the operator reacts to, once for every fault at every
// point. What the operator asks the API server for is compared with its role.
func TestSurvivesEveryFault(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, cachev1alpha1.AddToScheme(scheme))
	named := metav1.ObjectMeta{Namespace: "default", Name: "memcached-sample"}
	report := reconciletest.Explore(t, reconciletest.Scenario{
		Scheme: scheme, CRDs: []string{"../config/crd/bases"},
		Start: func(p *reconciletest.Process) error {
			return controller.SetupWithManager(p.Manager(controller.Cache()))
		},
		Actions: []reconciletest.Action{
			reconciletest.Create(sample(2)),
			reconciletest.Change(sample(0), func(m *cachev1alpha1.Memcached) { m.Spec.Size = 3; m.Spec.MaxConnections = 7 }),
			reconciletest.Change(&appsv1.Deployment{ObjectMeta: named}, func(d *appsv1.Deployment) {
				d.Spec.Replicas, d.OwnerReferences[0].BlockOwnerDeletion = new(int32(1)), nil
			}),
			reconciletest.Change(&corev1.Service{ObjectMeta: named}, func(s *corev1.Service) { s.OwnerReferences[0].BlockOwnerDeletion = nil }),
			reconciletest.Delete(&corev1.Service{ObjectMeta: named}),
			reconciletest.Delete(&appsv1.Deployment{ObjectMeta: named}),
			reconciletest.Delete(sample(0)),
		},
	}, reconciletest.Depth(2), reconciletest.LimitPairs(100))
	reconciletest.AssertRole(t, "../config/rbac/role.yaml", []*reconciletest.Report{report})
}
