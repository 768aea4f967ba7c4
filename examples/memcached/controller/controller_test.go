package controller_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile"
)

// harness is the reconciler with controller-runtime's fake client. It counts writes.
type harness struct {
	client.Client
	reconciler *reconcile.Reconciler[*cachev1.Memcached]
	writes     int
	after      time.Duration // RequeueAfter of the last pass
}

func newHarness(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, cachev1.AddToScheme(scheme))
	h := &harness{}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(objects...).
		WithStatusSubresource(&cachev1.Memcached{}, &appsv1.Deployment{}).
		WithIndex(&corev1.Pod{}, controller.PodIndex, controller.IndexPod).
		Build()
	h.reconciler = reconcile.New(h.counting(), controller.Steps()...)
	return h
}

// counting returns the client of the reconciler. Writes of the test itself are not counted.
func (h *harness) counting() client.Client {
	return interceptor.NewClient(h.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			h.writes++
			return c.Create(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			h.writes++
			return c.Patch(ctx, obj, patch, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			h.writes++
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
}

// reconcile runs one pass over the sample and returns the sample after it.
func (h *harness) reconcile(t *testing.T) *cachev1.Memcached {
	t.Helper()
	h.writes = 0
	m := sample(0)
	result, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	require.NoError(t, err)
	h.after = result.RequeueAfter
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), m))
	return m
}

// sample has a UID and a generation, which the fake client does not set.
func sample(size int32) *cachev1.Memcached {
	return &cachev1.Memcached{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "memcached-sample", UID: "sample-uid", Generation: 1},
		Spec:       cachev1.MemcachedSpec{Size: size},
	}
}

// pod returns a pod as the Deployment's controller creates it.
func pod(name string, edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"app": "memcached", "memcached_cr": "memcached-sample"},
		OwnerReferences: controlledBy("ReplicaSet", "memcached-sample-5d8c"),
	}}
	edit(p)
	return p
}

func controlledBy(kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: "owner", Controller: new(true)}}
}

func foreign(owners []metav1.OwnerReference) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		ready(p)
		p.OwnerReferences = owners
	}
}

func ready(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func pending(*corev1.Pod) {}

func waiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "memcached", Image: "memcached:typo",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "back-off 10s, pod " + p.Name}},
		}}
	}
}

func terminating(p *corev1.Pod) {
	ready(p)
	p.DeletionTimestamp = new(metav1.Now())
	p.Finalizers = []string{"example.com/keep"} // the fake client refuses a terminating object without one
}

func evicted(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }

func TestChildren(t *testing.T) {
	h := newHarness(t, sample(3))
	m := h.reconcile(t)

	var d appsv1.Deployment
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &d))
	assert.True(t, metav1.IsControlledBy(&d, m))
	assert.EqualValues(t, 3, *d.Spec.Replicas)
	assert.Equal(t, map[string]string{"app": "memcached", "memcached_cr": "memcached-sample"}, d.Spec.Selector.MatchLabels)
	container := d.Spec.Template.Spec.Containers[0]
	assert.Equal(t, "memcached:1.6-alpine", container.Image)
	assert.Equal(t, []string{"memcached", "-m=64", "-o", "modern", "-v", "-c", "1024"}, container.Command)
	assert.EqualValues(t, 11211, *d.Spec.Template.Spec.SecurityContext.RunAsUser)

	var s corev1.Service
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &s))
	assert.True(t, metav1.IsControlledBy(&s, m))
	assert.Equal(t, corev1.ClusterIPNone, s.Spec.ClusterIP)

	assert.Equal(t, 3, h.writes, "two children and the status")
	assert.False(t, conditions.IsTrue(m.Status.Conditions, "Available"), "created is not available")
	assert.False(t, conditions.IsTrue(m.Status.Conditions, conditions.Ready))
	assert.True(t, conditions.IsTrue(m.Status.Conditions, "ServiceReady"))

	h.reconcile(t)
	assert.Zero(t, h.writes, "nothing has changed")
}

func TestUpdateStatus(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	tests := map[string]struct {
		reason string
		size   int32
		pods   []client.Object
		nodes  []string
		status metav1.ConditionStatus
		want   string // reason of Available
	}{
		"no pods wanted":     {"size 0 is available", 0, nil, []string{}, yes, "Succeeded"},
		"no pods yet":        {"created is not available", 1, nil, []string{}, no, "PodsNotReady"},
		"unsorted pods":      {"the order of a list has no meaning", 2, []client.Object{pod("b", ready), pod("a", ready)}, []string{"a", "b"}, yes, "Succeeded"},
		"one pending":        {"all pods have to be ready", 2, []client.Object{pod("a", ready), pod("b", pending)}, []string{"a", "b"}, no, "PodsNotReady"},
		"made by hand":       {"anybody who may create pods can set labels", 1, []client.Object{pod("a", foreign(nil)), pod("b", ready)}, []string{"b"}, yes, "Succeeded"},
		"only by hand":       {"the Deployment has no pod yet", 1, []client.Object{pod("a", foreign(nil))}, []string{}, no, "PodsNotReady"},
		"another ReplicaSet": {"it is that of another Deployment", 1, []client.Object{pod("a", foreign(controlledBy("ReplicaSet", "memcached-sample-b-5d8c")))}, []string{}, no, "PodsNotReady"},
		"shorter name":       {"it is that of another Deployment", 1, []client.Object{pod("a", foreign(controlledBy("ReplicaSet", "memcached-5d8c")))}, []string{}, no, "PodsNotReady"},
		"a Job's":            {"a Deployment has ReplicaSets", 1, []client.Object{pod("a", foreign(controlledBy("Job", "memcached-sample-5d8c")))}, []string{}, no, "PodsNotReady"},
		"one terminating":    {"it stops serving", 2, []client.Object{pod("a", ready), pod("b", terminating)}, []string{"a"}, no, "PodsNotReady"},
		"one evicted":        {"it has ended", 1, []client.Object{pod("a", evicted), pod("b", ready)}, []string{"b"}, yes, "Succeeded"},
		"ContainerCreating":  {"every pod starts so", 1, []client.Object{pod("a", waiting("ContainerCreating"))}, []string{"a"}, no, "PodsNotReady"},
		"ImagePullBackOff":   {"it does not start by itself", 1, []client.Object{pod("a", waiting("ImagePullBackOff"))}, []string{"a"}, no, "ImagePullBackOff"},
		"several reasons":    {"that of the first pod by name does not alternate", 2, []client.Object{pod("b", waiting("CrashLoopBackOff")), pod("a", waiting("ErrImagePull"))}, []string{"a", "b"}, no, "ErrImagePull"},
		"failed update":      {"the old pod serves, but the new one does not start", 1, []client.Object{pod("a", ready), pod("b", waiting("ImagePullBackOff"))}, []string{"a", "b"}, no, "ImagePullBackOff"},
		"more than wanted":   {"they are about to be removed", 1, []client.Object{pod("a", ready), pod("b", ready)}, []string{"a", "b"}, yes, "Succeeded"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, append(tc.pods, sample(tc.size))...)
			m := h.reconcile(t)

			assert.Equal(t, tc.nodes, m.Status.Nodes, tc.reason)
			available, _ := conditions.Get(m.Status.Conditions, "Available")
			assert.Equal(t, tc.status, available.Status, tc.reason)
			assert.Equal(t, tc.want, available.Reason, tc.reason)
			assert.True(t, h.after == 0 || h.after >= time.Second, "events trigger the next pass, and not a timer of %s", h.after)
			assert.NotContains(t, available.Message, "10s", "the message would change at each pass, and be written again and again")

			h.reconcile(t)
			assert.Zero(t, h.writes, "nothing has changed")
		})
	}
}

func TestReady(t *testing.T) {
	h := newHarness(t, sample(1), pod("a", ready))
	m := h.reconcile(t)
	assert.False(t, conditions.IsTrue(m.Status.Conditions, conditions.Ready), "the status of the Deployment does not say that it rolled out")

	var d appsv1.Deployment
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &d))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		},
	}
	require.NoError(t, h.Status().Update(t.Context(), &d))

	m = h.reconcile(t)
	assert.True(t, conditions.IsTrue(m.Status.Conditions, conditions.Ready))
	assert.Equal(t, "1/1", m.Status.Available)
	assert.EqualValues(t, 1, m.Status.ObservedGeneration)
	assert.Equal(t, 1, h.writes, "the status only")
	assert.Zero(t, h.after, "events trigger the next pass, not a timer")
}

// TestQuota checks a reason that only the status of the Deployment shows: its pods cannot be created.
func TestQuota(t *testing.T) {
	h := newHarness(t, sample(2), pod("a", ready))
	m := h.reconcile(t)
	var d appsv1.Deployment
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &d))
	d.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
		Message: `pods "memcached-sample-5d8c-x7f2q" is forbidden: exceeded quota: small`,
	}}
	require.NoError(t, h.Status().Update(t.Context(), &d))

	m = h.reconcile(t)
	available, _ := conditions.Get(m.Status.Conditions, "Available")
	assert.Equal(t, "FailedCreate", available.Reason)
	assert.Equal(t, "1 of 2 pods are ready; new pods: forbidden: exceeded quota: small", available.Message)
}

// TestDeploymentWithoutReplicas covers a nil pointer that the tutorial's operator dereferences. The API server sets a default.
func TestDeploymentWithoutReplicas(t *testing.T) {
	h := newHarness(t, sample(2))
	m := h.reconcile(t)
	var d appsv1.Deployment
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &d))
	d.Spec.Replicas = nil
	require.NoError(t, h.Update(t.Context(), &d))

	h.reconcile(t)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &d))
	assert.EqualValues(t, 2, *d.Spec.Replicas)
}

func TestSizeChange(t *testing.T) {
	h := newHarness(t, sample(3))
	m := h.reconcile(t)
	m.Spec.Size, m.Generation = 4, 2
	require.NoError(t, h.Update(t.Context(), m))

	m = h.reconcile(t)
	var d appsv1.Deployment
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), &d))
	assert.EqualValues(t, 4, *d.Spec.Replicas)
	assert.EqualValues(t, 2, m.Status.ObservedGeneration)
}

func TestForeignDeployment(t *testing.T) {
	foreign := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "memcached-sample"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(7))},
	}
	h := newHarness(t, sample(3), foreign)
	m := h.reconcile(t)

	c, _ := conditions.Get(m.Status.Conditions, conditions.Ready)
	assert.Equal(t, "OwnedByAnother", c.Reason)
	assert.Contains(t, c.Message, "Deployment default/memcached-sample")
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign))
	assert.EqualValues(t, 7, *foreign.Spec.Replicas, "it is somebody else's")
}

func TestInvalidServiceName(t *testing.T) {
	m := sample(0)
	m.Name = "cache.example"
	h := newHarness(t, m)
	_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
	require.NoError(t, err)
	require.NoError(t, h.Get(t.Context(), client.ObjectKeyFromObject(m), m))

	c, _ := conditions.Get(m.Status.Conditions, "ServiceReady")
	assert.Equal(t, "InvalidServiceName", c.Reason)
	assert.False(t, conditions.IsTrue(m.Status.Conditions, conditions.Stalled), "it works without a Service")
}
