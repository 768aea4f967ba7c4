package controller_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/cache/controller"
	"github.com/opblocks/opblocks/reconcile"
)

// harness is the reconciler with controller-runtime's fake client. It counts writes. A pass sends several at once.
type harness struct {
	client.Client
	reconciler *reconcile.Reconciler[*storev1alpha1.Cache]
	writes     atomic.Int64
}

func newHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{}
	h.Client = fake.NewClientBuilder().WithScheme(newScheme(t)).
		WithObjects(objects...).
		WithStatusSubresource(&storev1alpha1.Cache{}, &appsv1.StatefulSet{}).
		Build()
	h.reconciler = reconcile.New(h.counting(), (&controller.Operator{}).Steps()...)
	return h
}

// counting returns the client of the reconciler. Writes of the test itself are not counted.
func (h *harness) counting() client.Client {
	return interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			h.writes.Add(1)
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			h.writes.Add(1)
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			h.writes.Add(1)
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
}

// reconcile runs passes over a Cache until one writes nothing, and returns the Cache after it.
func (h *harness) reconcile(t *testing.T, c *storev1alpha1.Cache) *storev1alpha1.Cache {
	t.Helper()
	h.writes.Store(1)
	for passes := 0; h.writes.Load() > 0; passes++ {
		require.Less(t, passes, 10, "the operator does not come to rest")
		h.writes.Store(0)
		_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		require.NoError(t, err)
	}
	after := &storev1alpha1.Cache{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(c), after))
	return after
}

// identified returns a sample with a UID and a generation, which the fake client does not set.
func identified(edits ...func(*storev1alpha1.CacheSpec)) *storev1alpha1.Cache {
	c := sample(edits...)
	c.UID, c.Generation = "sample-uid", 1
	return c
}

func (h *harness) statefulSet(t *testing.T) *appsv1.StatefulSet {
	t.Helper()
	set := &appsv1.StatefulSet{}
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(sample()), set))
	return set
}

func (h *harness) named(t *testing.T, name string, obj client.Object) {
	t.Helper()
	require.NoError(t, h.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj))
}

func TestChildren(t *testing.T) {
	h := newHarness(t, identified(func(s *storev1alpha1.CacheSpec) {
		s.Settings = map[string]string{"maxmemory": "1mb", "appendonly": "yes"}
	}))
	c := h.reconcile(t, sample())

	var settings corev1.ConfigMap
	h.named(t, "cache-sample-settings", &settings)
	assert.Equal(t, "appendonly yes\nmaxmemory 1mb\n", settings.Data["redis.conf"], "sorted, so that it stays the same")
	var secret corev1.Secret
	h.named(t, "cache-sample-password", &secret)
	assert.Len(t, secret.Data["password"], 32)
	var service corev1.Service
	h.named(t, "cache-sample", &service)
	assert.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP)

	set := h.statefulSet(t)
	assert.True(t, metav1.IsControlledBy(set, c))
	assert.EqualValues(t, 1, *set.Spec.Replicas)
	assert.Equal(t, service.Spec.Selector, set.Spec.Selector.MatchLabels)
	pod := set.Spec.Template
	assert.Equal(t, "redis:7.4-alpine", pod.Spec.Containers[0].Image)
	assert.EqualValues(t, 999, *pod.Spec.SecurityContext.RunAsUser)
	assert.Equal(t, "1Gi", set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String())
	for key, value := range pod.Annotations {
		assert.NotContains(t, value, string(secret.Data["password"]), key)
	}
	assert.Equal(t, "cache-sample-password", c.Status.PasswordSecret)
	assert.Equal(t, "app.kubernetes.io/instance=cache-sample,app.kubernetes.io/name=cache", c.Status.Selector)
	assert.False(t, conditions.IsTrue(c.Status.Conditions, conditions.Ready), "no pod is ready")
}

// TestRolls checks what replaces the pods.
func TestRolls(t *testing.T) {
	tests := map[string]struct {
		reason string
		change func(*testing.T, *harness)
		rolls  bool
	}{
		"setting":  {"the server reads them at its start", spec(func(s *storev1alpha1.CacheSpec) { s.Settings = map[string]string{"a": "b"} }), true},
		"password": {"so are passwords", spec(func(s *storev1alpha1.CacheSpec) { s.PasswordVersion = "2" }), true},
		"replicas": {"a new pod is as the others", spec(func(s *storev1alpha1.CacheSpec) { s.Replicas = new(int32(3)) }), false},
		"password changed by hand": {"the server has to know it", func(t *testing.T, h *harness) {
			edit(t, h, &corev1.Secret{ObjectMeta: meta("cache-sample-password")}, func(s *corev1.Secret) { s.Data["password"] = []byte("my own") })
		}, true},
		"label of the Secret": {"nothing that the server reads", func(t *testing.T, h *harness) {
			edit(t, h, &corev1.Secret{ObjectMeta: meta("cache-sample-password")}, func(s *corev1.Secret) { s.Labels["team"] = "blue" })
		}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, identified(func(s *storev1alpha1.CacheSpec) { s.PasswordVersion = "1" }))
			h.reconcile(t, sample())
			before := h.statefulSet(t).Spec.Template
			tc.change(t, h)
			h.reconcile(t, sample())
			assert.Equal(t, tc.rolls, !assert.ObjectsAreEqual(before, h.statefulSet(t).Spec.Template), tc.reason)
		})
	}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func spec(change func(*storev1alpha1.CacheSpec)) func(*testing.T, *harness) {
	return func(t *testing.T, h *harness) {
		edit(t, h, sample(), func(c *storev1alpha1.Cache) { change(&c.Spec); c.Generation++ })
	}
}

func edit[T client.Object](t *testing.T, h *harness, obj T, change func(T)) {
	t.Helper()
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	change(obj)
	require.NoError(t, h.Update(t.Context(), obj))
}

// TestSettingsFrom checks that a new Cache waits for its settings, and that a running one keeps them.
func TestSettingsFrom(t *testing.T) {
	h := newHarness(t, identified(func(s *storev1alpha1.CacheSpec) {
		s.SettingsFrom, s.Settings = &corev1.LocalObjectReference{Name: "common"}, map[string]string{"maxmemory": "2mb"}
	}))
	c := h.reconcile(t, sample())
	ready, _ := conditions.Get(c.Status.Conditions, conditions.Ready)
	assert.Contains(t, ready.Message, `"common" not found`)
	assert.True(t, client.IgnoreNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(sample()), &appsv1.StatefulSet{})) == nil)

	from := common("1mb")
	from.Data["appendonly"] = "yes"
	require.NoError(t, h.Create(t.Context(), from))
	h.reconcile(t, sample())
	before := h.statefulSet(t)
	require.NoError(t, h.Delete(t.Context(), common("")))
	c = h.reconcile(t, sample())
	var settings corev1.ConfigMap
	h.named(t, "cache-sample-settings", &settings)
	assert.Equal(t, "appendonly yes\nmaxmemory 2mb\n", settings.Data["redis.conf"], "those of the spec win")
	assert.Equal(t, before.Spec, h.statefulSet(t).Spec)
	ready, _ = conditions.Get(c.Status.Conditions, conditions.Ready)
	assert.Equal(t, "ReferenceNotFound", ready.Reason)
}

func TestRefusals(t *testing.T) {
	tests := map[string]struct{ reason, name, setting, patch, want, message string }{
		"dot":           {"no Service can be named so", "a.b", "", "", "InvalidName", "not a name for a Service"},
		"digit":         {"no Service can be named so", "1a", "", "", "InvalidName", "not a name for a Service"},
		"long":          {"its pods would never be created", strings.Repeat("a", 53), "", "", "InvalidName", "not a name for a StatefulSet"},
		"two lines":     {"it would be two settings", "a", "yes\nport 1", "", "InvalidSettings", `setting "appendonly" has more than one line`},
		"unknown field": {"it would be ignored", "a", "", `{"spec":{"imagez":1}}`, "InvalidPodTemplate", "spec.podTemplate.spec.imagez"},
		"selector":      {"the API server would refuse it", "a", "", `{"metadata":{"labels":{"app.kubernetes.io/name":"b"}}}`, "InvalidPodTemplate", "app.kubernetes.io/name"},
		"finalizers":    {"the pods would stay when the Cache is deleted", "a", "", `{"metadata":{"finalizers":["example.com/keep"]}}`, "InvalidPodTemplate", "spec.podTemplate.metadata.finalizers"},
		"owners":        {"the pods would go with another object, or stay", "a", "", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":"c"}]}}`, "InvalidPodTemplate", "spec.podTemplate.metadata.ownerReferences"},
		"account":       {"the pods would get its token", "a", "", `{"spec":{"serviceAccountName":"admin"}}`, "InvalidPodTemplate", "spec.podTemplate.spec.serviceAccountName: Forbidden"},
		"older name":    {"the API server reads it too", "a", "", `{"spec":{"serviceAccount":"admin"}}`, "InvalidPodTemplate", "spec.podTemplate.spec.serviceAccount: Forbidden"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := identified(func(s *storev1alpha1.CacheSpec) {
				s.Settings, s.PodTemplate.Raw = map[string]string{"appendonly": tc.setting}, []byte(tc.patch)
			})
			c.Name = tc.name
			c = newHarness(t, c).reconcile(t, c)
			stalled, _ := conditions.Get(c.Status.Conditions, conditions.Stalled)
			assert.Equal(t, tc.want, stalled.Reason, tc.reason)
			assert.Contains(t, stalled.Message, tc.message, tc.reason)
		})
	}
}

func TestPodTemplate(t *testing.T) {
	h := newHarness(t, identified(func(s *storev1alpha1.CacheSpec) {
		s.PodTemplate.Raw = []byte(`{"spec":{"containers":[{"name":"redis","resources":{"limits":{"memory":"1Gi"}}}]}}`)
	}))
	h.reconcile(t, sample())
	containers := h.statefulSet(t).Spec.Template.Spec.Containers
	assert.Len(t, containers, 2)
	assert.Equal(t, "1Gi", containers[0].Resources.Limits.Memory().String())
}

func TestReady(t *testing.T) {
	h := newHarness(t, identified())
	h.reconcile(t, sample())
	set := h.statefulSet(t)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 1, ReadyReplicas: 1, CurrentReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	require.NoError(t, h.Status().Update(t.Context(), set))

	c := h.reconcile(t, sample())
	assert.True(t, conditions.IsTrue(c.Status.Conditions, conditions.Ready))
	assert.EqualValues(t, 1, c.Status.ReadyReplicas)
	assert.EqualValues(t, 1, c.Status.ObservedGeneration)

	pod := &corev1.Pod{ObjectMeta: meta("cache-sample-0")}
	pod.Labels = set.Spec.Selector.MatchLabels
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "redis", Image: "redis:typo", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}
	require.NoError(t, h.Create(t.Context(), pod))
	c = h.reconcile(t, sample())
	ready, _ := conditions.Get(c.Status.Conditions, conditions.Ready)
	assert.Equal(t, "ImagePullBackOff", ready.Reason)
	assert.Contains(t, ready.Message, "redis:typo")
}

// TestBackupVolumeOfSomebodyElse checks that no backup is written into a claim that the operator did not make.
func TestBackupVolumeOfSomebodyElse(t *testing.T) {
	for name, theirs := range map[string]bool{"Theirs": true, "Ours": false} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{identified(func(s *storev1alpha1.CacheSpec) { s.Backup = &storev1alpha1.BackupSpec{Schedule: "@daily"} })}
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("cache-sample-backups")}
			if theirs {
				objects = append(objects, claim)
			}
			h := newHarness(t, objects...)
			now := clocktesting.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			h.reconciler = reconcile.New(h.counting(), (&controller.Operator{Clock: now}).Steps()...)
			c := h.reconcile(t, sample())
			volume, _ := conditions.Get(c.Status.Conditions, "BackupVolume")
			assert.Equal(t, theirs, volume.Reason == "OwnedByAnother", volume.Message)
			now.SetTime(now.Now().Add(24 * time.Hour))
			h.reconcile(t, sample())
			var jobs batchv1.JobList
			require.NoError(t, h.List(t.Context(), &jobs))
			assert.Equal(t, theirs, len(jobs.Items) == 0)
			h.named(t, "cache-sample-backups", claim)
			assert.Equal(t, theirs, len(claim.OwnerReferences) == 0)
			assert.Equal(t, theirs, claim.Spec.Resources.Requests == nil)
		})
	}
}

func TestBackupInterval(t *testing.T) {
	tests := map[string]struct{ reason, schedule, want, message string }{
		"second":     {"there would be a Job every second", "@every 1s", "InvalidSchedule", "at least 1m0s is allowed"},
		"59 seconds": {"it is less than a minute", "@every 59s", "InvalidSchedule", "at least 1m0s is allowed"},
		"minute":     {"it is the shortest interval that is allowed", "@every 1m", "", ""},
		"fields":     {"five fields have a minute at least", "* * * * *", "", ""},
		"wrong":      {"it is not a schedule", "* * *", "InvalidSchedule", "it has 3 fields"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := identified(func(s *storev1alpha1.CacheSpec) { s.Backup = &storev1alpha1.BackupSpec{Schedule: tc.schedule} })
			h := newHarness(t, c)
			h.reconciler = reconcile.New(h.counting(), (&controller.Operator{MinBackupInterval: time.Minute}).Steps()...)
			c = h.reconcile(t, c)
			stalled, _ := conditions.Get(c.Status.Conditions, conditions.Stalled)
			assert.Equal(t, tc.want, stalled.Reason, tc.reason)
			assert.Contains(t, stalled.Message, tc.message, tc.reason)
			assert.Equal(t, tc.want != "", c.Status.Backup.NextScheduleTime == nil, tc.reason)
		})
	}
}
