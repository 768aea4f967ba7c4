package test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestLifecycle runs the sample from creation to deletion, with the commands of a user, with each option of
// the manager.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	operatortest.EachManagerOption(t, testLifecycle)
}

func testLifecycle(t *testing.T, options ctrl.Options) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), u.ElectLeader(options), u.Namespace)
	kubectl := func(args ...string) string { return u.Kubectl(t, args...) }

	kubectl("create", "--filename", sampleFile)
	m := u.listed(t, sampleName, 3)
	assert.Equal(t, "3/3", m.Status.Available)
	assert.True(t, conditions.IsTrue(m.Status.Conditions, "Available"))
	assert.True(t, conditions.IsTrue(m.Status.Conditions, "ServiceReady"))

	kubectl("patch", "memcacheds", sampleName, "--type=merge", "--patch", `{"spec":{"size":4}}`)
	m = u.listed(t, sampleName, 4)
	assert.EqualValues(t, 2, m.Generation)
	pods := u.pods(t, sampleName)
	assert.Equal(t, pods, m.Status.Nodes, "the API server lists by name")
	assert.Contains(t, kubectl("get", "deployment", sampleName), "4/4")
	assert.Contains(t, kubectl("get", "memcacheds", sampleName), "4/4")

	kubectl("scale", "memcacheds/"+sampleName, "--replicas=5")
	m = u.listed(t, sampleName, 5)
	assert.EqualValues(t, 5, m.Status.ReadyReplicas)
	assert.Equal(t, "app=memcached,memcached_cr="+sampleName, m.Status.Selector)

	kubectl("scale", "memcacheds/"+sampleName, "--replicas=0")
	m = u.settled(t, sampleName, metav1.ConditionTrue)
	assert.True(t, conditions.IsTrue(m.Status.Conditions, "Available"), "no pod is wanted")
	operatortest.Eventually(t, "no node is left", func(c *assert.CollectT) {
		assert.Equal(c, "[]", kubectl("get", "memcacheds", sampleName, "--output=jsonpath={.status.nodes}"))
	})

	kubectl("scale", "memcacheds/"+sampleName, "--replicas=2")
	u.settled(t, sampleName, metav1.ConditionTrue)
	kubectl("delete", "memcacheds", sampleName)
	u.Gone(t, u.Deployment(sampleName), u.Service(sampleName))
	operatortest.Eventually(t, "nothing is left", func(c *assert.CollectT) {
		assert.Empty(c, strings.TrimSpace(kubectl("get", "deployments,replicasets,pods,services", "--output=name")))
	})
}

// TestChildren checks the children as a real API server stores them.
func TestChildren(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	m := u.create(t, "cache", 1)
	u.settled(t, m.Name, metav1.ConditionTrue)

	d := operatortest.Live(t, u, u.Deployment(m.Name))
	assert.True(t, metav1.IsControlledBy(d, m))
	assert.Equal(t, map[string]string{"app": "memcached", "memcached_cr": m.Name}, d.Spec.Selector.MatchLabels)
	assert.Equal(t, map[string]string{"app": "memcached", "memcached_cr": m.Name}, d.Spec.Template.Labels,
		"labels that may change belong to metadata only: in the template they would roll the pods")
	for _, label := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"} {
		assert.Contains(t, d.Labels, label)
	}
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	assert.EqualValues(t, 11211, *pod.SecurityContext.RunAsUser)
	assert.True(t, *pod.SecurityContext.RunAsNonRoot)
	assert.NotNil(t, container.LivenessProbe.TCPSocket)
	assert.NotNil(t, container.ReadinessProbe.TCPSocket)
	assert.Equal(t, "memcached", container.Ports[0].Name)
	assert.EqualValues(t, 11211, container.Ports[0].ContainerPort)

	s := operatortest.Live(t, u, u.Service(m.Name))
	assert.True(t, metav1.IsControlledBy(s, m))
	assert.Equal(t, d.Spec.Selector.MatchLabels, s.Spec.Selector)
	assert.Equal(t, "None", s.Spec.ClusterIP)

	var sets appsv1.ReplicaSetList
	require.NoError(t, u.List(t.Context(), &sets, client.InNamespace(u.Namespace)))
	assert.Len(t, sets.Items, 1, "nothing was rolled without a reason")
}

// TestRestrictedNamespace runs the pods in a namespace that enforces the restricted security context.
func TestRestrictedNamespace(t *testing.T) {
	t.Parallel()
	u := newUser(t, cluster(t))
	u.Kubectl(t, "label", "namespace", u.Namespace, "pod-security.kubernetes.io/enforce=restricted")
	startOperator(t, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.create(t, "cache", 1)
	u.settled(t, "cache", metav1.ConditionTrue)
}
