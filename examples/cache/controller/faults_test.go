//go:build !race

// An exploration runs one pass at a time, so the race detector finds nothing in it, and would take ten times as long.

package controller_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestSurvivesEveryFault runs scenarios that cover everything that the operator reacts to, once for every fault at every
// point. Package reconciletest itself asserts that pods are not replaced more often than without faults, and that no password
// leaves its Secret. The faults at the creation and the deletion of a Cache are tried only in the scenario "made", which also deletes the Cache
// in the middle of the passes that write its children. A scenario whose changes leave nothing else to clean up does not delete it again.
func TestSurvivesEveryFault(t *testing.T) {
	set := func(edit func(*storev1alpha1.CacheSpec)) reconciletest.Action {
		return reconciletest.Change(sample(), func(c *storev1alpha1.Cache) { edit(&c.Spec) })
	}
	named := metav1.ObjectMeta{Namespace: "default", Name: "cache-sample"}
	withSettings := sample(func(s *storev1alpha1.CacheSpec) {
		s.SettingsFrom, s.Priority = &corev1.LocalObjectReference{Name: "common"}, new(int32(10))
	})
	backedUp := func(s *storev1alpha1.CacheSpec) {
		s.Backup, s.KeepBackups = &storev1alpha1.BackupSpec{Schedule: "0 * * * *"}, true
	}
	tests := map[string][]reconciletest.Action{
		"made": {
			reconciletest.Create(withSettings),
			reconciletest.Create(common("1mb")),
			reconciletest.Delete(sample()),
		},
		"settings": {
			reconciletest.Create(common("1mb")),
			reconciletest.Create(withSettings).WithoutFaults(),
			reconciletest.Change(common(""), func(m *corev1.ConfigMap) { m.Data["maxmemory"] = "2mb" }),
			reconciletest.Wait(time.Minute), // while settings are missing, no pods are replaced
			reconciletest.Delete(common("")),
		},
		"password": {
			reconciletest.Create(sample()).WithoutFaults(),
			set(func(s *storev1alpha1.CacheSpec) { s.PasswordVersion = "2" }),
		},
		"edited": {
			reconciletest.Create(sample(func(s *storev1alpha1.CacheSpec) { s.Priority = new(int32(10)) })).WithoutFaults(),
			editChildren,
		},
		"volumes": {
			reconciletest.Create(sample(func(s *storev1alpha1.CacheSpec) { s.Priority = new(int32(10)) })).WithoutFaults(),
			set(func(s *storev1alpha1.CacheSpec) { s.Storage = new(resource.MustParse("2Gi")) }),
			reconciletest.Delete(sample()).WithoutFaults(),
		},
		"replaced": {
			reconciletest.Create(sample()).WithoutFaults(),
			reconciletest.Change(&appsv1.StatefulSet{ObjectMeta: named}, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "redis:1" }),
		},
		"backup": {
			reconciletest.Create(sample(backedUp)).WithoutFaults(),
			reconciletest.Wait(time.Hour),
			reconciletest.Wait(time.Minute), // the run is recorded before the schedule goes
			set(func(s *storev1alpha1.CacheSpec) { s.Backup, s.KeepBackups = nil, false }),
		},
		"backup from now on": {
			reconciletest.Create(sample()).WithoutFaults(),
			set(backedUp),
			reconciletest.Delete(sample()).WithoutFaults(),
		},
	}
	var reports []*reconciletest.Report
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) {
			reports = append(reports, reconciletest.Explore(t, reconciletest.Scenario{
				Scheme: newScheme(t), CRDs: []string{"../config/crd/bases"},
				Start:   start,
				Actions: actions,
				SimulatedControllers: []reconciletest.SimulatedController{
					{For: &appsv1.StatefulSet{}, Step: statefulSets}, {For: &batchv1.Job{}, Step: jobs}, {For: &corev1.PersistentVolumeClaim{}},
				},
				External: func() reconciletest.External { return registrytest.New() },
				Ignore:   varying,
			}))
		})
	}
	reconciletest.AssertRole(t, "../config/rbac/role.yaml", reports, unexplored...)
}

// unexplored are verbs for what happens only on a real control plane: kinds that come and go, and Jobs beyond the limit of their history.
// No action edits the Secret: if somebody deleted it at the same time, the operator would generate a new password and replace the pods.
var unexplored = []string{
	"list customresourcedefinitions.apiextensions.k8s.io", "watch customresourcedefinitions.apiextensions.k8s.io",
	"create servicemonitors.monitoring.coreos.com", "delete servicemonitors.monitoring.coreos.com", "get servicemonitors.monitoring.coreos.com",
	"list servicemonitors.monitoring.coreos.com", "patch servicemonitors.monitoring.coreos.com", "watch servicemonitors.monitoring.coreos.com",
	"delete jobs.batch", "delete secrets",
}
