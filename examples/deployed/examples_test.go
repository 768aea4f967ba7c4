//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/examples/internal/mariadb"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/examples/topic/queue/queuetest"
)

// example is one of the examples.
type example struct {
	name string
	// clusterWide is true if the example has no overlay for one namespace.
	clusterWide bool
	// away is true if the API server cannot be reached when the operator starts, and once more while it leads.
	away bool
	// configure returns what users have to add to the kustomization. It may be nil.
	configure func(t *testing.T) string
	// prepare creates what the pods need in the namespace of the operator. It may be nil.
	prepare func(t *testing.T, n *node, namespace string)
	// walk does what the README says. It calls between after the sample is ready.
	walk func(t *testing.T, u *operatortest.User, between func())
}

var examples = []example{
	{name: "memcached", prepare: prepareConversion, walk: walkMemcached},
	{name: "app", away: true, walk: walkApp},
	{name: "eru", walk: walkEru},
	{name: "cache", clusterWide: true, walk: walkCache},
	{name: "databaseuser", configure: configureDatabaseUser, prepare: prepareDatabaseUser, walk: walkDatabaseUser},
	{name: "topic", configure: configureTopic, walk: walkTopic},
}

func sample(example, file string) string { return "../" + example + "/config/samples/" + file }

// await waits with kubectl.
func await(t *testing.T, u *operatortest.User, condition, object string) {
	t.Helper()
	u.Kubectl(t, "wait", "--for="+condition, object, "--timeout="+operatortest.Patience.String())
}

func walkMemcached(t *testing.T, u *operatortest.User, between func()) {
	u.Kubectl(t, "apply", "-f", sample("memcached", "cache_v1_memcached.yaml"))
	await(t, u, "condition=Ready", "memcached/memcached-sample")
	between()
	u.Kubectl(t, "scale", "memcached/memcached-sample", "--replicas=5")
	await(t, u, "jsonpath={.status.readyReplicas}=5", "memcached/memcached-sample")
	assert.Contains(t, u.Kubectl(t, "get", "memcached"), "5/5")
	u.Kubectl(t, "delete", "memcached/memcached-sample")
	u.Gone(t, u.Deployment("memcached-sample"), u.Service("memcached-sample"))
}

func walkApp(t *testing.T, u *operatortest.User, between func()) {
	u.Kubectl(t, "apply", "-f", sample("app", "app_v1_app.yaml"))
	await(t, u, "condition=Ready", "apps.app.huolala.cn/nginx-app")
	between()
	u.Kubectl(t, "rollout", "restart", "deployment/nginx-app")
	u.Kubectl(t, "scale", "apps.app.huolala.cn/nginx-app", "--replicas=3")
	await(t, u, "jsonpath={.status.readyReplicas}=3", "apps.app.huolala.cn/nginx-app")
	template := operatortest.Live(t, u, u.Deployment("nginx-app")).Spec.Template
	assert.Contains(t, template.Annotations, "kubectl.kubernetes.io/restartedAt", "the restart survives the change")
	u.Kubectl(t, "delete", "apps.app.huolala.cn/nginx-app")
	u.Gone(t, u.Deployment("nginx-app"), u.Service("nginx-app"))
}

func walkEru(t *testing.T, u *operatortest.User, between func()) {
	u.Kubectl(t, "apply", "-f", sample("eru", "deployment.yaml"))
	await(t, u, "create", "eru/nginx")
	between()
	u.Kubectl(t, "patch", "eru/nginx", "--type=merge", "-p", `{"spec":{"enabled":true,"schedule":"* * * * *"}}`)
	operatortest.Eventually(t, "the Deployment is restarted", func(c *assert.CollectT) {
		template := operatortest.Live(c, u, u.Deployment("nginx")).Spec.Template
		assert.Contains(c, template.Annotations, "kubectl.kubernetes.io/restartedAt")
	})
	u.Kubectl(t, "patch", "eru/nginx", "--type=merge", "-p", `{"spec":{"enabled":false}}`)
	u.Kubectl(t, "apply", "-f", sample("eru", "mtsre_v1_eru.yaml")) // in a time zone, which the image has to know
	await(t, u, "jsonpath={.status.nextScheduleTime}", "eru/nginx-weekly")
	assert.Contains(t, u.Kubectl(t, "get", "erus"), "nginx-weekly")
	u.Kubectl(t, "delete", "deployment/nginx")
	await(t, u, "delete", "eru/nginx")
}

func walkCache(t *testing.T, u *operatortest.User, between func()) {
	u.Kubectl(t, "apply", "-f", sample("cache", "store_v1alpha1_cache.yaml"))
	await(t, u, "condition=Ready", "cache/cache-sample")
	between()
	u.Kubectl(t, "scale", "cache/cache-sample", "--replicas=3")
	await(t, u, "jsonpath={.status.readyReplicas}=3", "cache/cache-sample")
	secret := operatortest.Live(t, u, &corev1.Secret{ObjectMeta: u.Meta("cache-sample-password")})
	assert.NotEmpty(t, secret.Data["password"])
	u.Kubectl(t, "delete", "cache/cache-sample")
	u.Gone(t, &appsv1.StatefulSet{ObjectMeta: u.Meta("cache-sample")})
}

// configureDatabaseUser writes the address of the database to the arguments, as the README says.
func configureDatabaseUser(t *testing.T) string {
	t.Helper()
	server, err := database()
	require.NoError(t, err)
	return fmt.Sprintf(`patches:
- target: {kind: Deployment}
  patch: |
    - {op: test, path: /spec/template/spec/containers/0/args/4, value: "--database-address=mariadb.shop.svc:3306"}
    - {op: replace, path: /spec/template/spec/containers/0/args/4, value: "--database-address=%s"}
`, server.Address())
}

func prepareDatabaseUser(t *testing.T, n *node, namespace string) {
	t.Helper()
	server, err := database()
	require.NoError(t, err)
	secret := &corev1.Secret{StringData: map[string]string{"username": server.Admin().User + "\n", "password": server.Admin().Password + "\n"}}
	secret.Namespace, secret.Name = namespace, "databaseuser-database"
	require.NoError(t, n.Create(t.Context(), secret))
	t.Cleanup(func() { assert.NoError(t, n.Delete(context.Background(), secret)) })
}

func walkDatabaseUser(t *testing.T, u *operatortest.User, between func()) {
	server, err := database()
	require.NoError(t, err)
	loggedIn := func(password string) {
		operatortest.Eventually(t, "alice can log in", func(c *assert.CollectT) {
			assert.NoError(c, server.CanLogIn(t.Context(), mariadb.Credentials{User: "alice", Password: password}))
		})
	}
	u.Kubectl(t, "apply", "-f", sample("databaseuser", "mygroup_v1alpha1_databaseuser.yaml"))
	await(t, u, "condition=Ready", "dbu/databaseuser-sample")
	loggedIn("change-me")
	between()
	u.Kubectl(t, "patch", "secret/databaseuser-sample", "-p", `{"stringData":{"password":"changed"}}`)
	loggedIn("changed")
	assert.Contains(t, strings.Join(strings.Fields(u.Kubectl(t, "get", "dbu")), " "), "databaseuser-sample")
	u.Kubectl(t, "delete", "dbu/databaseuser-sample")
	assert.Error(t, server.CanLogIn(t.Context(), mariadb.Credentials{User: "alice", Password: "changed"}), "the account is dropped")
}

// configureTopic writes the address of a queue server to the arguments, as the README says.
func configureTopic(t *testing.T) string {
	t.Helper()
	listening := httptest.NewServer(queuetest.Handler(&queuetest.Server{}))
	t.Cleanup(listening.Close)
	return fmt.Sprintf(`patches:
- target: {kind: Deployment}
  patch: |
    - {op: test, path: /spec/template/spec/containers/0/args/3, value: "--server=https://queue.example.net"}
    - {op: replace, path: /spec/template/spec/containers/0/args/3, value: "--server=%s"}
`, listening.URL)
}

func walkTopic(t *testing.T, u *operatortest.User, between func()) {
	u.Kubectl(t, "apply", "-f", sample("topic", "queue_v1alpha1_topic.yaml"))
	await(t, u, "condition=Stalled", "topic/topic-sample") // its token is not the server's
	u.Kubectl(t, "patch", "secret/queue-server", "-p", `{"stringData":{"token":"`+queuetest.Token+`"}}`)
	await(t, u, "condition=Ready", "topic/topic-sample")
	between()
	u.Kubectl(t, "patch", "topic/topic-sample", "--type=merge", "-p", `{"spec":{"partitions":6}}`)
	await(t, u, "jsonpath={.status.observedGeneration}=2", "topic/topic-sample")
	await(t, u, "condition=Ready", "topic/topic-sample")
	u.Kubectl(t, "delete", "topic/topic-sample")
}
