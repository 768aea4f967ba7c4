package test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	cachev1 "github.com/opblocks/opblocks/examples/memcached/api/v1"
)

// TestDriftIsRepairedAtOnce: the tutorial's operator watches only Memcacheds, repairs only replicas, and requeues after a
// minute.
func TestDriftIsRepairedAtOnce(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	// Each case has its own Memcached: an object that somebody changes again and again is repaired less often.
	for name, edit := range map[string]func(*appsv1.Deployment){
		"replicas": func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) },
		"image":    func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "memcached:1.4" },
		"command":  func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = []string{"sleep", "1d"} },
		"probe":    func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].ReadinessProbe = nil },
		"user":     func(d *appsv1.Deployment) { d.Spec.Template.Spec.SecurityContext.RunAsUser = new(int64(1)) },
		"label":    func(d *appsv1.Deployment) { delete(d.Labels, "app.kubernetes.io/name") },
		"owner":    func(d *appsv1.Deployment) { d.OwnerReferences[0].BlockOwnerDeletion = nil },
	} {
		t.Run(name, func(t *testing.T) {
			u.create(t, name, 1)
			u.settled(t, name, metav1.ConditionTrue)
			d := operatortest.Live(t, u, u.Deployment(name))
			original := d.DeepCopy()
			operatortest.Change(t, u, d, edit)
			operatortest.Eventually(t, "the Deployment is as before", func(c *assert.CollectT) {
				operatortest.Live(c, u, d)
				assert.Equal(c, original.Spec, d.Spec)
				assert.Equal(c, original.Labels, d.Labels)
				assert.Equal(c, original.OwnerReferences, d.OwnerReferences)
			})
		})
	}
	m := u.create(t, "cache", 1)
	u.settled(t, m.Name, metav1.ConditionTrue)
	s := operatortest.Live(t, u, u.Service(m.Name))
	original := s.DeepCopy()
	t.Run("service", func(t *testing.T) {
		operatortest.Change(t, u, s, func(s *corev1.Service) { s.Spec.Ports[0].TargetPort, s.Spec.Selector = intstr.FromInt32(80), nil })
		operatortest.Eventually(t, "the Service is as before", func(c *assert.CollectT) {
			operatortest.Live(c, u, s)
			assert.Equal(c, original.Spec, s.Spec)
		})
	})
	for _, child := range []client.Object{u.Deployment(m.Name), u.Service(m.Name)} {
		t.Run("deleted", func(t *testing.T) { u.DeleteAndAwaitNew(t, child) })
	}
	u.settled(t, m.Name, metav1.ConditionTrue)
}

// TestOthersFieldsSurvive checks that fields stay that others set and the operator does not.
func TestOthersFieldsSurvive(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	m := u.create(t, "cache", 1)
	u.settled(t, m.Name, metav1.ConditionTrue)

	u.Kubectl(t, "rollout", "restart", "deployment/cache")
	u.Kubectl(t, "annotate", "deployment/cache", "team=blue")
	operatortest.Change(t, u, m, func(m *cachev1.Memcached) { m.Spec.Size = 2 })
	u.settled(t, m.Name, metav1.ConditionTrue)

	d := operatortest.Live(t, u, u.Deployment(m.Name))
	assert.EqualValues(t, 2, *d.Spec.Replicas)
	assert.Equal(t, "blue", d.Annotations["team"])
	assert.Contains(t, d.Spec.Template.Annotations, "kubectl.kubernetes.io/restartedAt")
}

// TestNodesFollowThePods: the tutorial's operator lists the pods once, when it creates the Deployment, including those that are
// terminating, and unsorted.
func TestNodesFollowThePods(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "cache", 3)
	m := u.listed(t, "cache", 3)
	assert.True(t, slices.IsSorted(m.Status.Nodes))
	first := m.Status.Nodes[0]

	// A finalizer keeps the pod terminating until the test removes it.
	pod := &corev1.Pod{ObjectMeta: u.Meta(first)}
	const keep = "example.com/keep"
	operatortest.Change(t, u, pod, func(p *corev1.Pod) { p.Finalizers = []string{keep} })
	require.NoError(t, u.Delete(t.Context(), pod))
	operatortest.Eventually(t, "another pod is listed instead", func(c *assert.CollectT) {
		operatortest.Live(c, u, m)
		assert.Len(c, m.Status.Nodes, 3)
		assert.NotContains(c, m.Status.Nodes, first)
		assert.True(c, slices.IsSorted(m.Status.Nodes))
	})
	operatortest.Live(t, u, pod) // it is still there
	operatortest.Change(t, u, pod, func(p *corev1.Pod) { p.Finalizers = nil })
}

// TestCreatedIsNotAvailable: the tutorial's operator reports Available when the Deployment is created.
func TestCreatedIsNotAvailable(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t)) // where no pod ever comes
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "cache", 1)
	m := u.settled(t, "cache", metav1.ConditionFalse)
	operatortest.Live(t, u, u.Deployment(m.Name))
	got, _ := conditions.Get(m.Status.Conditions, "Available")
	assert.Equal(t, metav1.ConditionFalse, got.Status)
	assert.Equal(t, "PodsNotReady", got.Reason)
	assert.Equal(t, "0 of 1 pods are ready", got.Message)
	assert.True(t, conditions.IsTrue(m.Status.Conditions, conditions.Reconciling))
}

// byReplicaSet returns the reference of a pod to a ReplicaSet of the Deployment of a name.
func byReplicaSet(name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-5d8c", UID: "set", Controller: new(true)}}
}

// TestAvailableWhenThePodsAreReady checks that a pod counts from when it is ready.
func TestAvailableWhenThePodsAreReady(t *testing.T) {
	t.Parallel()
	u := newUser(t, apiServer(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	m := u.create(t, "cache", 1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: "cache-1", Labels: map[string]string{"app": "memcached", "memcached_cr": "cache"}, OwnerReferences: byReplicaSet("cache")},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "memcached", Image: "memcached"}}},
	}
	require.NoError(t, u.Create(t.Context(), pod))
	operatortest.Eventually(t, "the node is listed", func(c *assert.CollectT) {
		operatortest.Live(c, u, m)
		assert.Equal(c, []string{"cache-1"}, m.Status.Nodes)
		assert.False(c, conditions.IsTrue(m.Status.Conditions, "Available"))
	})
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	require.NoError(t, u.Status().Update(t.Context(), pod))
	u.condition(t, "cache", "Available", "Succeeded")
}

// TestSelectorsAreApart: newer versions of the tutorial give the pods of all Memcacheds the same labels.
func TestSelectorsAreApart(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "red", 2)
	u.create(t, "blue", 1)
	red, blue := u.listed(t, "red", 2), u.listed(t, "blue", 1)
	assert.NotContains(t, red.Status.Nodes, blue.Status.Nodes[0])
	operatortest.Eventually(t, "the Service finds its own pods", func(c *assert.CollectT) {
		assert.Equal(c, blue.Status.Nodes, u.Endpoints(c, "blue"))
	})
}

// TestImageWithPortAndDigest: newer versions of the tutorial use the part of the image after its first colon as a label.
func TestImageWithPortAndDigest(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	for name, image := range map[string]string{
		"port":   "registry.example.com:5000/cache/memcached",
		"digest": "memcached@sha256:" + strings.Repeat("0123456789abcdef", 4),
		"both":   "registry.example.com:5000/cache/memcached:1.6@sha256:" + strings.Repeat("0123456789abcdef", 4),
	} {
		m := u.memcached(name, 1)
		m.Spec.Image = image
		require.NoError(t, u.Create(t.Context(), m))
		u.settled(t, name, metav1.ConditionTrue)
		d := operatortest.Live(t, u, u.Deployment(name))
		assert.Equal(t, image, d.Spec.Template.Spec.Containers[0].Image)
	}
}

// TestQuietWhenConverged: the tutorial's operator writes the status when the order of the pods changes, and requeues.
func TestQuietWhenConverged(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	o := startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "cache", 3)
	m := u.listed(t, "cache", 3)
	o.Pass(t, u, m)
	o.Requests.Take()
	for range 5 { // each event of a pod is a pass
		o.PassAfter(t, m, func() {
			for _, name := range m.Status.Nodes {
				operatortest.Change(t, u, client.Object(&corev1.Pod{ObjectMeta: u.Meta(name)}), operatortest.Touch)
			}
		})
	}
	assert.Empty(t, o.Requests.Take())
}

// TestTakeOver starts the operator on objects of the tutorial's operator: fields that only that one set are removed, fields of
// others stay.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	m := u.create(t, "cache", 2)
	old := tutorialDeployment(u, m)
	require.NoError(t, u.Create(t.Context(), old, client.FieldOwner("manager")))
	u.Kubectl(t, "annotate", "deployment/cache", "team=blue")
	operatortest.Eventually(t, "its pods run", func(c *assert.CollectT) {
		pods := u.pods(c, m.Name)
		assert.Len(c, pods, 2)
	})

	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.listed(t, m.Name, 2)
	d := operatortest.Live(t, u, u.Deployment(m.Name))
	assert.Equal(t, old.UID, d.UID, "it was not made anew")
	container := d.Spec.Template.Spec.Containers[0]
	assert.Equal(t, "memcached:1.6-alpine", container.Image)
	assert.Empty(t, container.Env, "set by the former operator, no longer wanted")
	assert.Empty(t, d.Spec.Template.Spec.NodeSelector, "set by the former operator, no longer wanted")
	assert.NotContains(t, d.Labels, "version", "set by the former operator, no longer wanted")
	assert.Equal(t, "blue", d.Annotations["team"], "set by somebody else")
	for _, entry := range d.ManagedFields {
		assert.NotEqual(t, "manager", entry.Manager)
	}
	operatortest.Live(t, u, u.Service(m.Name))
}

func tutorialDeployment(u *user, m *cachev1.Memcached) *appsv1.Deployment {
	labels := map[string]string{"app": "memcached", "memcached_cr": m.Name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: map[string]string{"version": "1.4.36"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &m.Spec.Size,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"kubernetes.io/os": "linux"},
					Containers: []corev1.Container{{
						Image:   "memcached:1.4.36-alpine",
						Name:    "memcached",
						Command: []string{"memcached", "-m=64", "-o", "modern", "-v"},
						Env:     []corev1.EnvVar{{Name: "VERSION", Value: "1.4.36"}},
						Ports:   []corev1.ContainerPort{{ContainerPort: 11211, Name: "memcached"}},
					}},
				},
			},
		},
	}
	if err := ctrl.SetControllerReference(m, d, u.Scheme()); err != nil {
		panic(err)
	}
	return d
}
