//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"context"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestDeployed builds each example's image and deploys it: first for the whole cluster, and then for one namespace.
func TestDeployed(t *testing.T) {
	n := newNode(t)
	proxy, err := exec.Command("go", "env", "GOPROXY").Output()
	require.NoError(t, err)
	for _, e := range examples {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			i := buildImage(t, e.name, map[string]string{"GOPROXY": strings.TrimSpace(string(proxy))})
			t.Run("Cluster", func(t *testing.T) { testCluster(t, n, i, e) })
			if !e.clusterWide {
				t.Run("Namespaced", func(t *testing.T) { testNamespaced(t, n, i, e) })
			}
		})
	}
}

// testCluster runs both replicas, walks through the README and ends the leader on the way.
func testCluster(t *testing.T, n *node, i *image, e example) {
	d := n.deploy(t, e.name, "default", "", e.configuration(t), e.preparation(t, n))
	testDisruptionBudget(t, n, d)
	testNetworkPolicy(t, d)
	if e.name == "memcached" {
		testConversion(t, d)
	}
	if e.name == "app" {
		require.Len(t, d.find("Service"), 1)
		assert.Equal(t, "app-controller-manager-metrics-service", d.find("Service")[0].GetName(), "as the tutorial's operator has it")
	}
	first, second := n.run(t, i, d.pods[0], n.port(t)), n.run(t, i, d.pods[1], n.port(t))
	first.awaitReady(t)
	second.awaitReady(t)

	u := operatortest.NewUser(t, n.cp, clientgoscheme.Scheme)
	token := n.testMetrics(t, u, e.name, first)
	e.walk(t, u, func() {
		leader, standby := first, second
		eventually(t, "one replica leads", func() bool {
			if second.leads(t, token) {
				leader, standby = second, first
			}
			return leader.leads(t, token)
		})
		assert.False(t, standby.leads(t, token))
		if e.name == "memcached" { // the lease expires
			require.NoError(t, leader.process.Kill())
		} else { // the leader releases it
			leader.terminate(t)
		}
		eventually(t, "the other replica leads", func() bool { return standby.leads(t, token) })
		standby.awaitReady(t)
	})
	assert.Empty(t, refused(requests(t, d.Namespace, d.Spec.Template.Spec.ServiceAccountName)))
}

// testNamespaced runs one replica in a namespace of a team, and walks through the README there.
func testNamespaced(t *testing.T, n *node, i *image, e example) {
	u := operatortest.NewUser(t, n.cp, clientgoscheme.Scheme)
	d := n.deploy(t, e.name, "namespaced", u.Namespace, e.configuration(t), e.preparation(t, n))
	for _, obj := range d.objects {
		namespaced, err := n.IsObjectNamespaced(obj)
		require.NoError(t, err)
		assert.True(t, namespaced, "%s %s is not in the namespace", obj.GetKind(), obj.GetName())
		assert.Equal(t, u.Namespace, obj.GetNamespace(), "%s %s", obj.GetKind(), obj.GetName())
	}
	gate := newGate(t, n.port(t))
	if e.away { // it indexes Deployments by their owner, and needs the API server for that: the kubelet starts it again
		c := n.run(t, i, d.pods[0], gate.port())
		c.awaitEnd(t)
		assert.ErrorContains(t, c.process.Err(), "exit status 1")
	}
	gate.open()
	c := n.run(t, i, d.pods[0], gate.port())
	c.awaitReady(t)
	e.walk(t, u, func() {})
	status, body := c.metrics(t, "")
	assert.Equal(t, http.StatusOK, status, "the NetworkPolicy alone keeps others out")
	assert.Contains(t, body, "controller_runtime_reconcile_total")

	sent := requests(t, u.Namespace, d.Spec.Template.Spec.ServiceAccountName)
	assert.NotEmpty(t, sent)
	assert.Empty(t, refused(sent))
	assert.Empty(t, outside(sent, u.Namespace))
	if e.away {
		gate.shut()
		assert.Equal(t, http.StatusOK, c.probe(t, c.ReadinessProbe), "its metrics can still be read")
		c.awaitEnd(t)
		assert.ErrorContains(t, c.process.Err(), "exit status 1", "it cannot renew its lease")
	}
}

func (e example) configuration(t *testing.T) string {
	t.Helper()
	if e.configure == nil {
		return ""
	}
	return e.configure(t)
}

func (e example) preparation(t *testing.T, n *node) func(namespace string) {
	return func(namespace string) {
		t.Helper()
		if e.prepare != nil {
			e.prepare(t, n, namespace)
		}
	}
}

// port returns the port of the API server.
func (n *node) port(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(n.cp.Config().Host)
	require.NoError(t, err)
	return address.Port()
}

// testMetrics asks for metrics as three users, and returns the token of the one that may read them.
func (n *node) testMetrics(t *testing.T, u *operatortest.User, example string, c *container) (token string) {
	t.Helper()
	u.Kubectl(t, "create", "serviceaccount", "prometheus")
	name := u.Namespace + "-" + example
	u.Kubectl(t, "create", "clusterrolebinding", name, "--clusterrole="+example+"-metrics-reader", "--serviceaccount="+u.Namespace+":prometheus")
	t.Cleanup(func() {
		binding := &rbacv1.ClusterRoleBinding{}
		binding.Name = name
		assert.NoError(t, n.Delete(context.Background(), binding))
	})
	nobody, err := n.cp.ServiceAccountConfig(t.Context(), u.Namespace, "default")
	require.NoError(t, err)
	prometheus, err := n.cp.ServiceAccountConfig(t.Context(), u.Namespace, "prometheus")
	require.NoError(t, err)

	var status int
	eventually(t, "metrics are served", func() bool { // their server makes a certificate first, and readiness does not wait for it
		status, _ = c.metrics(t, "")
		return status != 0
	})
	assert.Equal(t, http.StatusUnauthorized, status, "anonymous")
	status, _ = c.metrics(t, nobody.BearerToken)
	assert.Equal(t, http.StatusForbidden, status, "a ServiceAccount without the role")
	eventually(t, "a ServiceAccount with the role reads metrics", func() bool {
		status, body := c.metrics(t, prometheus.BearerToken)
		return status == http.StatusOK && strings.Contains(body, "leader_election_master_status")
	})
	return prometheus.BearerToken
}

// testDisruptionBudget checks that one of the two pods may be evicted.
func testDisruptionBudget(t *testing.T, n *node, d *deployment) {
	t.Helper()
	require.Len(t, d.find("PodDisruptionBudget"), 1)
	budget := &policyv1.PodDisruptionBudget{}
	budget.Namespace, budget.Name = d.Namespace, d.find("PodDisruptionBudget")[0].GetName()
	operatortest.Eventually(t, "the budget counts the pods", func(c *assert.CollectT) {
		operatortest.Live(c, n, budget)
		assert.EqualValues(c, 2, budget.Status.CurrentHealthy)
		assert.EqualValues(c, 1, budget.Status.DisruptionsAllowed)
	})
}

// testNetworkPolicy checks that the policy is for the pods, and admits only some namespaces to their metrics port.
func testNetworkPolicy(t *testing.T, d *deployment) {
	t.Helper()
	policies := d.find("NetworkPolicy")
	require.NotEmpty(t, policies)
	policy := &networkingv1.NetworkPolicy{}
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(policies[0].Object, policy))
	assert.Equal(t, d.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels)
	assert.Equal(t, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, policy.Spec.PolicyTypes)
	require.Len(t, policy.Spec.Ingress, 1)
	assert.NotEmpty(t, policy.Spec.Ingress[0].From)
	require.Len(t, policy.Spec.Ingress[0].Ports, 1)
	assert.Equal(t, "metrics", policy.Spec.Ingress[0].Ports[0].Port.StrVal)
}
