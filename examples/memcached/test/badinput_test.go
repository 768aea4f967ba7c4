package test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
	"github.com/opblocks/opblocks/examples/memcached/controller"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

var kind = cachev1.GroupVersion.WithKind("Memcached")

func TestSchema(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	tests := map[string]struct {
		spec   any
		want   string // in the error; empty if it is accepted
		reason string
	}{
		"tutorial's":      {spec: map[string]any{"size": 3}, reason: "such objects are there already"},
		"nothing wanted":  {spec: map[string]any{"size": 0}, reason: "zero is a size"},
		"no spec":         {spec: nil, reason: "such objects may be there already"},
		"negative size":   {spec: map[string]any{"size": -1}, want: "spec.size in body should be greater than or equal to 0", reason: "no pods fewer than none"},
		"no size":         {spec: map[string]any{}, want: "spec.size: Required value", reason: "a forgotten size is no wish for no pods"},
		"null size":       {spec: map[string]any{"size": nil}, want: "spec.size: Required value", reason: "as if it were forgotten"},
		"size as text":    {spec: map[string]any{"size": "3"}, want: "spec.size in body must be of type integer", reason: "YAML quotes slip in"},
		"half a pod":      {spec: map[string]any{"size": 1.5}, want: "spec.size in body must be of type int", reason: "no half pods"},
		"size overflows":  {spec: map[string]any{"size": int64(1) << 32}, want: "spec.size", reason: "the operator could not read any Memcached any more"},
		"memory":          {spec: map[string]any{"size": 1, "memory": "64Mi"}, reason: "the default, in words"},
		"memory in bytes": {spec: map[string]any{"size": 1, "memory": 67108864}, reason: "YAML without quotes"},
		"least memory":    {spec: map[string]any{"size": 1, "memory": "1024Ki"}, reason: "memcached starts with a megabyte"},
		"most memory":     {spec: map[string]any{"size": 1, "memory": "1Ti"}, reason: "v1alpha1 can say as much"},
		"no memory":       {spec: map[string]any{"size": 1, "memory": "0"}, want: "must be a quantity from 1Mi to 1Ti without an exponent", reason: "memcached does not start"},
		"megabyte":        {spec: map[string]any{"size": 1, "memory": "1M"}, want: "must be a quantity from 1Mi to 1Ti without an exponent", reason: "less than a whole mebibyte"},
		"too much memory": {spec: map[string]any{"size": 1, "memory": "1025Gi"}, want: "must be a quantity from 1Mi to 1Ti without an exponent", reason: "v1alpha1 cannot say it"},
		"exponent":        {spec: map[string]any{"size": 1, "memory": "1e9"}, want: "without an exponent", reason: "the API server would take half a minute for a large one"},
		"large exponent":  {spec: map[string]any{"size": 1, "memory": "1e999999999"}, want: "without an exponent", reason: "the API server would take half a minute for it"},
		"memory as words": {spec: map[string]any{"size": 1, "memory": "much"}, want: "spec.memory", reason: "the operator could not read it"},
		"two points":      {spec: map[string]any{"size": 1, "memory": "1.5.5Mi"}, want: "spec.memory", reason: "the operator could not read it"},
		"no connections":  {spec: map[string]any{"size": 1, "maxConnections": -5}, want: "spec.maxConnections in body should be greater than or equal to 1", reason: "nobody could use it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u.AssertAdmission(t, kind, tc.spec, tc.want, tc.reason)
		})
	}
}

func TestNoSpec(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	m := u.Untyped(kind, nil)
	m.SetName("cache")
	require.NoError(t, u.Create(t.Context(), m))
	got := u.settled(t, "cache", metav1.ConditionTrue)
	assert.Equal(t, "0/0", got.Status.Available)
	u.Kubectl(t, "scale", "memcached/cache", "--replicas=1")
	operatortest.Eventually(t, "it is scaled", func(c *assert.CollectT) {
		assert.Equal(c, "1/1", u.settled(t, "cache", metav1.ConditionTrue).Status.Available)
	})
}

// TestForeignDeployment checks that a Deployment of somebody else is left alone and named, also if it is not in the cache.
func TestForeignDeployment(t *testing.T) {
	t.Parallel()
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "somebody", UID: "somebody", Controller: new(true)}
	unseen := func(namespace string) cache.Options {
		options := controller.Cache(namespace)
		options.ByObject[&appsv1.Deployment{}] = cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": "memcached"})}
		return options
	}
	tests := map[string]struct {
		owners []metav1.OwnerReference
		cache  func(namespace string) cache.Options
		want   string
		reason string
	}{
		"nobody's":         {want: "is not controlled by anything", reason: "a user made it by hand"},
		"somebody's":       {owners: []metav1.OwnerReference{owner}, want: "belongs to ConfigMap somebody", reason: "another operator made it"},
		"not in the cache": {cache: unseen, want: "is not controlled by anything", reason: "creating by apply would take it over"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, apiServer(t)) // no garbage collector that takes the owner for gone
			foreign := u.Deployment("cache")
			foreign.OwnerReferences = tc.owners
			foreign.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mine"}}
			foreign.Spec.Template.Labels = map[string]string{"app": "mine"}
			foreign.Spec.Template.Spec.Containers = []corev1.Container{{Name: "mine", Image: "mine"}}
			require.NoError(t, u.Create(t.Context(), foreign))
			var options ctrl.Options
			if tc.cache != nil {
				options.Cache = tc.cache(u.Namespace)
			}
			startOperator(t, u.ControlPlane.Config(), options, u.Namespace)

			u.create(t, "cache", 3)
			got := u.condition(t, "cache", conditions.Ready, "OwnedByAnother")
			assert.Contains(t, got.Message, "Deployment "+u.Namespace+"/cache", tc.reason)
			assert.Contains(t, got.Message, tc.want, tc.reason)
			now := operatortest.Live(t, u, u.Deployment("cache"))
			assert.Equal(t, foreign.ResourceVersion, now.ResourceVersion, "it was not written to")

			require.NoError(t, u.Delete(t.Context(), foreign))
			operatortest.Eventually(t, "it heals when the name is free", func(c *assert.CollectT) {
				operatortest.Live(c, u, now)
				assert.EqualValues(c, 3, *now.Spec.Replicas)
			})
			u.condition(t, "cache", conditions.Ready, "PodsNotReady")
		})
	}
}

// TestForeignService checks that a Memcached is ready without its Service, whose name is taken.
func TestForeignService(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	foreign := u.Service("cache")
	foreign.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	require.NoError(t, u.Create(t.Context(), foreign))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "cache", 1)
	m := u.settled(t, "cache", metav1.ConditionTrue)
	got, _ := conditions.Get(m.Status.Conditions, "ServiceReady")
	assert.Equal(t, "OwnedByAnother", got.Reason)
	now := operatortest.Live(t, u, u.Service("cache"))
	assert.Equal(t, foreign.ResourceVersion, now.ResourceVersion, "it was not written to")
	assert.False(t, conditions.IsTrue(m.Status.Conditions, conditions.Stalled))
}

func TestUnpullableImage(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	m := u.memcached("cache", 2)
	m.Spec.Image = "registry.invalid/memcached:1.6"
	require.NoError(t, u.Create(t.Context(), m))
	got := u.condition(t, "cache", "Available", "ImagePullBackOff")
	assert.Equal(t, metav1.ConditionFalse, got.Status)
	assert.Equal(t, "0 of 2 pods are ready; container memcached with image registry.invalid/memcached:1.6 waits: ImagePullBackOff", got.Message)
	u.condition(t, "cache", conditions.Ready, "ImagePullBackOff")

	operatortest.Change(t, u, m, func(m *cachev1.Memcached) { m.Spec.Image = "" })
	u.settled(t, "cache", metav1.ConditionTrue)

	// The pods that run keep running. The condition also shows the new pod that cannot start.
	operatortest.Change(t, u, m, func(m *cachev1.Memcached) { m.Spec.Image = "registry.invalid/memcached:1.7" })
	got = u.condition(t, "cache", "Available", "ImagePullBackOff")
	assert.Contains(t, got.Message, "2 of 2 pods are ready; ")
}

// TestRefused checks that the condition has the API server's words if it refuses a child, and that other objects are reconciled.
func TestRefused(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	quota := &corev1.ResourceQuota{ObjectMeta: u.Meta("small")}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("10Gi")}
	require.NoError(t, u.Create(t.Context(), quota))
	operatortest.Eventually(t, "the quota is in force", func(c *assert.CollectT) {
		operatortest.Live(c, u, quota)
		assert.NotEmpty(c, quota.Status.Hard)
	})
	requests := func(amounts map[corev1.ResourceName]string) *cachev1.ResourceRequirements {
		list := cachev1.ResourceList{}
		for name, amount := range amounts {
			list[name] = cachev1.Quantity{Quantity: resource.MustParse(amount)}
		}
		return &cachev1.ResourceRequirements{Requests: list}
	}
	tests := map[string]struct {
		spec   cachev1.MemcachedSpec
		shown  string // condition
		want   string // its reason
		says   string
		reason string
	}{
		"deployment": {
			spec:  cachev1.MemcachedSpec{Size: 1, Resources: &cachev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "none"}}}},
			shown: conditions.Stalled, want: "Invalid", says: "spec.template.spec.containers[0].resources.claims",
			reason: "the API server refuses the Deployment",
		},
		"pod": {
			spec:  cachev1.MemcachedSpec{Size: 1, Image: " memcached"},
			shown: "Available", want: "FailedCreate", says: "0 of 1 pods are ready; new pods: invalid: spec.containers[0].image: Invalid value: \" memcached\": must not have leading or trailing whitespace",
			reason: "the API server accepts the Deployment, and refuses its pods",
		},
		"quota": {
			spec:  cachev1.MemcachedSpec{Size: 1, Resources: requests(map[corev1.ResourceName]string{"memory": "20Gi"})},
			shown: "Available", want: "FailedCreate", says: "exceeded quota: small",
			reason: "an administrator has to act",
		},
		"unschedulable": {
			spec:  cachev1.MemcachedSpec{Size: 1, Resources: requests(map[corev1.ResourceName]string{"cpu": "1M", "memory": "96Mi"})},
			shown: "Available", want: "Unschedulable", says: "0 of 1 pods are ready; a pod is not scheduled: Insufficient cpu",
			reason: "no node has as much",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := u.memcached(name, 0)
			m.Spec = tc.spec
			require.NoError(t, u.Create(t.Context(), m))
			got := u.condition(t, m.Name, tc.shown, tc.want)
			assert.Contains(t, got.Message, tc.says, tc.reason)
			ready := u.condition(t, m.Name, conditions.Ready, tc.want)
			assert.Equal(t, metav1.ConditionFalse, ready.Status)

			operatortest.Change(t, u, m, func(m *cachev1.Memcached) { m.Spec = cachev1.MemcachedSpec{Size: 1} })
			u.settled(t, m.Name, metav1.ConditionTrue)
		})
	}
}

// TestDeletedWhileBeingCreated deletes the Memcached after its Deployment and before its Service is created: nothing is left.
func TestDeletedWhileBeingCreated(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	m := u.memcached("cache", 2)
	deleted := make(chan error, 1)
	gone := &cachev1.Memcached{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}} // the test writes to m itself
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{NewClient: operatortest.Intercept(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			err := c.Create(ctx, obj, opts...)
			if _, ok := obj.(*appsv1.Deployment); ok && err == nil {
				deleted <- u.Delete(t.Context(), gone)
			}
			return err
		},
	})}, u.Namespace)
	require.NoError(t, u.Create(t.Context(), m))
	require.NoError(t, <-deleted)
	u.Gone(t, m, u.Deployment("cache"), u.Service("cache"))
	operatortest.Eventually(t, "no pod is left", func(c *assert.CollectT) {
		assert.Empty(c, u.pods(c, "cache"))
	})
}

// TestNamesake deletes a Memcached and creates another one of its name: it waits until the old children are gone, and gets its
// own.
func TestNamesake(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	for i := range 5 {
		m := u.create(t, "cache", int32(i%2+1))
		operatortest.Eventually(t, "it has children of its own", func(c *assert.CollectT) {
			d, s := u.Deployment("cache"), u.Service("cache")
			operatortest.Live(c, u, d)
			operatortest.Live(c, u, s)
			assert.True(c, metav1.IsControlledBy(d, m))
			assert.True(c, metav1.IsControlledBy(s, m))
		})
		if i < 4 {
			require.NoError(t, u.Delete(t.Context(), m))
		}
	}
	u.settled(t, "cache", metav1.ConditionTrue)
}

// TestAPIServerRestart restarts the API server while the operator works.
func TestAPIServerRestart(t *testing.T) {
	t.Parallel()
	u := newUser(t, controlplane.New(t, controlplane.Options{Controllers: true, CRDs: []string{"../config/crd/bases"}}))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	names := make([]string, 10)
	for i := range names {
		names[i] = fmt.Sprintf("cache-%d", i)
		u.create(t, names[i], 1)
	}
	require.NoError(t, u.ControlPlane.RestartAPIServer(t.Context()))
	for _, name := range names {
		u.settled(t, name, metav1.ConditionTrue)
		u.set(t, name, func(s *cachev1.MemcachedSpec) { s.Size = 2 })
	}
	for _, name := range names {
		assert.Equal(t, "2/2", u.settled(t, name, metav1.ConditionTrue).Status.Available)
	}
}

// TestNames uses names that are valid for a Memcached, but not for Services, labels or pods.
func TestNames(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	tests := map[string]struct {
		name    string
		service string // reason of ServiceReady
		reason  string
	}{
		"longest Service": {name: strings.Repeat("a", 63), service: "Succeeded", reason: "63 characters are allowed"},
		"dots":            {name: "cache.example", service: "InvalidServiceName", reason: "a Service is a part of a DNS name"},
		"digit first":     {name: "1-cache", service: "InvalidServiceName", reason: "not all API servers accept it"},
		"no label":        {name: strings.Repeat("b", 64), service: "InvalidServiceName", reason: "a label has 63 characters"},
		"no label either": {name: strings.Repeat("b", 64) + "c", service: "InvalidServiceName", reason: "it begins as the one before"},
		"longest name":    {name: strings.Repeat("d", 253), service: "InvalidServiceName", reason: "ReplicaSets and pods get shorter names by themselves"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			u.create(t, tc.name, 1)
			m := u.listed(t, tc.name, 1)
			got, _ := conditions.Get(m.Status.Conditions, "ServiceReady")
			assert.Equal(t, tc.service, got.Reason, "%s: %s", tc.reason, got.Message)
		})
	}
}
