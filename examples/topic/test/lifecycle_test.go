package test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
	queuev1alpha1 "github.com/opblocks/opblocks/examples/topic/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/topic/controller"
	"github.com/opblocks/opblocks/examples/topic/queue"
	"github.com/opblocks/opblocks/examples/topic/queue/queuetest"
)

// TestLifecycle runs the sample from creation to deletion, with the commands of a user. The queue server is in this process, behind a real
// connection.
func TestLifecycle(t *testing.T) {
	_, apiServer := operatortest.ControlPlanes("../config/crd/bases")
	scheme := operatortest.NewScheme(queuev1alpha1.AddToScheme)
	u := operatortest.NewUser(t, apiServer(t), scheme)
	memory := &queuetest.Server{}
	listening := httptest.NewServer(queuetest.Handler(memory))
	t.Cleanup(listening.Close)
	server, err := queue.NewServer(listening.URL, nil)
	require.NoError(t, err)
	operator := &controller.Operator{Server: server}
	operatortest.Start(t, u.ControlPlane.Config(), ctrl.Options{Scheme: scheme, Cache: controller.Cache(u.Namespace)}, &queuev1alpha1.Topic{}, operator.SetupWithManager)

	kubectl := func(args ...string) string { return u.Kubectl(t, args...) }
	await := func(condition string) {
		kubectl("wait", "--for="+condition, "topics.queue.example.com/topic-sample", "--timeout="+operatortest.Patience.String())
	}
	kubectl("apply", "--filename", "../config/samples/queue_v1alpha1_topic.yaml")
	await("condition=Stalled")
	assert.Contains(t, kubectl("get", "topics.queue.example.com"), "Unauthorized", "the sample has not the token")
	kubectl("patch", "secret", "queue-server", "--patch", `{"stringData": {"token": "`+queuetest.Token+`"}}`)
	await("condition=Ready")
	kubectl("patch", "topics.queue.example.com", "topic-sample", "--type=merge", "--patch", `{"spec": {"partitions": 6}}`)
	operatortest.Eventually(t, "the server has more partitions", func(c *assert.CollectT) {
		if assert.Len(c, memory.Things(), 1) {
			assert.EqualValues(c, 6, memory.Things()[0].Fields.Partitions)
		}
	})
	await("condition=Ready")
	assert.Contains(t, strings.Join(strings.Fields(kubectl("get", "topics.queue.example.com")), " "),
		"NAME PARTITIONS HOURS READY REASON AGE topic-sample 6 24 True Succeeded")
	kubectl("delete", "topics.queue.example.com", "topic-sample")
	assert.Empty(t, memory.Things(), "it is deleted before the object is gone")
}
