//go:build !race

package controller_test

import (
	"net/http"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/controller"
	"github.com/opblocks/opblocks/examples/cache/registry"
	"github.com/opblocks/opblocks/examples/cache/registry/registrytest"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

type cacheSpec = storev1alpha1.CacheSpec

// TestDoesWhatTheSpecSays runs more changes, and only without faults: nothing else in it can fail.
func TestDoesWhatTheSpecSays(t *testing.T) {
	hourly := func(s *cacheSpec) {
		s.Backup = &storev1alpha1.BackupSpec{Schedule: "0 * * * *", Storage: new(resource.MustParse("3Gi"))}
	}
	badName := &storev1alpha1.Cache{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "bad.name"}}
	tests := map[string]struct {
		actions []reconciletest.Action
		objects []client.Object
		unready []reconciletest.Unready
	}{
		"children": {actions: []reconciletest.Action{
			reconciletest.Create(sample()).Then(serves(1)).Then(server("redis:7.4-alpine", "1Gi")).Then(reconciletest.Has(otherChildren()...)),
			change(func(s *cacheSpec) { s.Image, s.Replicas = "redis:8", new(int32(2)) }).Then(serves(2)).Then(server("redis:8", "1Gi")),
			change(func(s *cacheSpec) { s.Storage = new(resource.MustParse("2Gi")) }).Then(serves(2)).Then(server("redis:8", "2Gi")).Then(volumes("2Gi", "2Gi")),
			change(func(s *cacheSpec) { s.Replicas = new(int32(1)) }).Then(serves(1)).Then(volumes("2Gi", "2Gi")),
			reconciletest.Delete(sample()).Then(registered(nil)).Then(only(&corev1.PersistentVolumeClaimList{})),
		}},
		"priority": {actions: []reconciletest.Action{
			reconciletest.Create(sample()).Then(serves(1)).Then(only(&schedulingv1.PriorityClassList{})),
			change(func(s *cacheSpec) { s.Priority = new(int32(10)) }).Then(serves(1)).Then(priority(10)),
			change(func(s *cacheSpec) { s.Priority = new(int32(20)) }).Then(serves(1)).Then(priority(20)),
			change(func(s *cacheSpec) { s.Priority = nil }).Then(serves(1)).Then(only(&schedulingv1.PriorityClassList{})),
		}},
		"settings": {actions: []reconciletest.Action{
			reconciletest.Create(sample(func(s *cacheSpec) {
				s.Settings, s.SettingsFrom = map[string]string{"appendonly": "yes"}, &corev1.LocalObjectReference{Name: "common"}
			})).Then(only(&appsv1.StatefulSetList{})).Then(waits("Ready", "ReferenceNotFound")),
			reconciletest.Create(common("1mb")).Then(settings("appendonly yes", "maxmemory 1mb")),
			reconciletest.Change(common(""), func(m *corev1.ConfigMap) { m.Data["maxmemory"] = "2mb" }).Then(settings("appendonly yes", "maxmemory 2mb")),
			change(func(s *cacheSpec) { s.Settings["maxmemory"] = "3mb" }).Then(settings("appendonly yes", "maxmemory 3mb")),
			change(func(s *cacheSpec) { s.Settings["maxmemory"] = "4mb\nrequirepass x" }).Then(waits("Ready", "InvalidSettings")),
			change(func(s *cacheSpec) { delete(s.Settings, "maxmemory") }).Then(settings("appendonly yes", "maxmemory 2mb")),
			reconciletest.Delete(common("")).Then(settings("appendonly yes", "maxmemory 2mb")),
			change(func(s *cacheSpec) { s.SettingsFrom = nil }).Then(settings("appendonly yes")),
		}},
		"password": {actions: []reconciletest.Action{
			reconciletest.Create(sample()).Then(password),
			rememberPassword,
			change(func(s *cacheSpec) { s.PasswordVersion = "2" }).Then(password),
		}},
		"pods": {actions: []reconciletest.Action{
			reconciletest.Create(sample()),
			change(func(s *cacheSpec) { s.Image = "registry.invalid/redis:1" }).Then(waits("Ready", "ImagePullBackOff")),
			change(func(s *cacheSpec) {
				s.Image, s.PodTemplate.Raw = "", []byte(`{"spec":{"nodeSelector":{"disk":"fast"}}}`)
			}),
			reconciletest.Delete(&corev1.Pod{ObjectMeta: named("-0")}).Then(serves(1)).Then(reconciletest.Has(template(corev1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}}))),
			change(func(s *cacheSpec) { s.PodTemplate.Raw = []byte(`{"spec":{"serviceAccountName":"admin"}}`) }).Then(waits("Ready", "InvalidPodTemplate")),
			change(func(s *cacheSpec) { s.PodTemplate.Raw = nil }).Then(serves(1)),
		}},
		"backup": {actions: []reconciletest.Action{
			reconciletest.Create(sample(hourly, func(s *cacheSpec) { s.KeepBackups = true })).Then(reconciletest.Has(claim("-backups", "3Gi"))),
			reconciletest.Wait(time.Hour),
			reconciletest.Wait(time.Minute).Then(copies),
			change(func(s *cacheSpec) { s.Backup = nil }).Then(reconciletest.Has(claim("-backups", "3Gi"))),
			change(hourly),
			change(func(s *cacheSpec) { s.Backup, s.KeepBackups = nil, false }).Then(only(&corev1.PersistentVolumeClaimList{}, "cache-data-cache-sample-0")),
		}},
		"backups again": {actions: []reconciletest.Action{
			reconciletest.Create(sample(hourly, func(s *cacheSpec) { s.KeepBackups = true })),
			reconciletest.Delete(sample()).Then(reconciletest.Has(claim("-backups", "3Gi"))),
			reconciletest.Create(sample(hourly)).Then(serves(1)).Then(reconciletest.Has(claim("-backups", "3Gi"))),
			reconciletest.Delete(sample()).Then(only(&corev1.PersistentVolumeClaimList{})),
		}},
		"backups elsewhere": {
			objects: []client.Object{claim("-backups", "1Gi")},
			unready: []reconciletest.Unready{{Object: sample(), Reason: "OwnedByAnother"}},
			actions: []reconciletest.Action{
				reconciletest.Create(sample(hourly)).Then(waits("BackupVolume", "OwnedByAnother")).Then(serves(1)),
				reconciletest.Wait(time.Hour).Then(only(&batchv1.JobList{})),
			},
		},
		"too often": {actions: []reconciletest.Action{
			reconciletest.Create(sample(func(s *cacheSpec) { s.Backup = &storev1alpha1.BackupSpec{Schedule: "* * * * *"} })).Then(waits("Ready", "InvalidSchedule")),
			change(hourly).Then(serves(1)),
		}},
		"name": {
			unready: []reconciletest.Unready{{Object: badName, Reason: "InvalidName"}},
			actions: []reconciletest.Action{reconciletest.Create(badName).Then(only(&corev1.SecretList{})).Then(only(&corev1.ServiceList{}))},
		},
	}
	noLateStart := reconciletest.Wait(time.Second) // an exploration does no runs with a late start after it
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			reconciletest.Explore(t, reconciletest.Scenario{
				Scheme: newScheme(t), CRDs: []string{"../config/crd/bases", "../test/testdata/servicemonitors.yaml"},
				Start: startLimited, Objects: tc.objects, Actions: append([]reconciletest.Action{noLateStart}, tc.actions...), Unready: tc.unready,
				External: func() reconciletest.External { return registrytest.New() },
				Ignore:   varying, Horizon: 2 * time.Minute,
				Options: reconciletest.Options{WithoutFaults: true},
			})
		})
	}
}

// startLimited starts the operator with an interval between backups, and a cache that has ServiceMonitors.
func startLimited(p *reconciletest.Process) error {
	p.CacheUnstructured()
	client, err := registry.New("http://registry.example.com", p.RoundTripper(p.External().(http.Handler)))
	if err != nil {
		return err
	}
	return (&controller.Operator{Registry: client, MinBackupInterval: time.Hour}).SetupWithManager(p.Manager(controller.Cache()))
}

func change(edit func(s *cacheSpec)) reconciletest.Action {
	return reconciletest.Change(sample(), func(c *storev1alpha1.Cache) { edit(&c.Spec) })
}
