package test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestLifecycle runs an Eru that a Deployment requests from creation to deletion, with the commands of a user. The pods are
// really replaced. It does so with each option of the manager.
func TestLifecycle(t *testing.T) {
	operatortest.EachManagerOption(t, testLifecycle)
}

func testLifecycle(t *testing.T, options ctrl.Options) {
	t.Parallel() // with the other options only: TestLifecycle itself is not parallel
	u := newUser(t, cluster(t))
	startOperator(t, realTime, u.ControlPlane.Config(), u.ElectLeader(options), u.Namespace)
	kubectl := func(args ...string) string { return u.Kubectl(t, args...) }

	kubectl("create", "--filename", "../config/samples/deployment.yaml")
	eru := u.becomes(t, "nginx", created)
	assert.Equal(t, map[string]string{
		"mtsre.meitu.com/deploymentName": `"nginx"`, "mtsre.meitu.com/enabled": "false", "mtsre.meitu.com/schedule": `"0 0 * * *"`,
	}, eru.Annotations)
	assert.Equal(t, map[string]string{"mtsre.meitu.com/created-by": "eru-operator"}, eru.Labels)
	assert.Equal(t, eruv1.EruSpec{DeploymentName: "nginx", Schedule: "0 0 * * *", ConcurrencyPolicy: "Forbid", HistoryLimit: 10}, eru.Spec)
	assert.Len(t, eru.Status.Conditions, 1)
	d := operatortest.Live(t, u, u.Deployment("nginx"))
	assert.Equal(t, []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "nginx", UID: d.UID, Controller: new(false)}}, eru.OwnerReferences)

	operatortest.Eventually(t, "two pods are ready", func(c *assert.CollectT) {
		assert.EqualValues(c, 2, operatortest.Live(c, u, d).Status.ReadyReplicas)
	})
	before := u.pods(t, "nginx")
	kubectl("patch", "erus", "nginx", "--type=merge", "--patch", `{"spec":{"enabled":true,"schedule":"@every 5s"}}`)
	eru = u.restarts(t, "nginx", "")
	due, err := time.Parse(time.RFC3339, u.restartedAt(t, "nginx"))
	require.NoError(t, err)
	assert.Zero(t, due.Sub(eru.Status.ScheduleSince.Time)%(5*time.Second), "the time that was due")
	operatortest.Eventually(t, "other pods run", func(c *assert.CollectT) {
		for _, pod := range u.pods(c, "nginx") {
			assert.NotContains(c, before, pod)
		}
	})
	row := strings.Fields(kubectl("get", "erus", "nginx", "--no-headers"))
	assert.Equal(t, []string{"nginx", "nginx", "@every", "5s", "true", "Running"}, row[:6])
	header := strings.Fields(kubectl("get", "erus", "nginx"))
	assert.Equal(t, []string{"NAME", "DEPLOYMENT", "SCHEDULE", "ENABLED", "PHASE", "LAST", "NEXT", "AGE"}, header[:8])
	assert.Equal(t, `"@every 5s"`, operatortest.Live(t, u, eru).Annotations["mtsre.meitu.com/schedule"])
	for kind, name := range map[string]string{"Deployment": "nginx", "Eru": "nginx"} {
		operatortest.Eventually(t, "an event on the "+kind, func(c *assert.CollectT) {
			assert.Contains(c, u.events(c, kind, name), "Restarted")
		})
	}

	kubectl("annotate", "deployment", "nginx", "mtsre.meitu.com/eru-")
	eru = u.becomes(t, "nginx", withdrawn)
	assert.True(t, eru.Spec.Enabled)
	assert.Equal(t, "@every 5s", eru.Spec.Schedule, "the user's schedule stays")
	assert.Nil(t, eru.Status.NextScheduleTime)
	stopped := u.restartedAt(t, "nginx")
	kubectl("annotate", "deployment", "nginx", "mtsre.meitu.com/eru=true")
	eru = u.restarts(t, "nginx", stopped)
	assert.NotEqual(t, stopped, u.restartedAt(t, "nginx"), "it goes on")

	kubectl("delete", "deployment", "nginx")
	u.Gone(t, eru)
}

// TestMadeByHand runs the sample of an Eru that a user creates, for the same Deployment.
func TestMadeByHand(t *testing.T) {
	u := newUser(t, cluster(t))
	startOperator(t, realTime, u.ControlPlane.Config(), ctrl.Options{}, u.Namespace)
	u.Kubectl(t, "create", "--filename", "../config/samples/mtsre_v1_eru.yaml")
	u.becomes(t, "nginx-weekly", missing)
	d := u.deploy(t, "nginx", false)
	eru := u.becomes(t, "nginx-weekly", scheduled)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	next := eru.Status.NextScheduleTime.In(berlin)
	assert.Equal(t, "Sunday 04:30", next.Format("Monday 15:04"))
	assert.Empty(t, eru.Labels)
	operatortest.Eventually(t, "its annotations are in step", func(c *assert.CollectT) {
		assert.Equal(c, `"30 4 * * SUN"`, operatortest.Live(c, u, eru).Annotations["mtsre.meitu.com/schedule"])
	})
	assert.True(t, slices.ContainsFunc(eru.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == d.UID && !*r.Controller }))
	assert.True(t, apierrors.IsNotFound(u.Get(t.Context(), client.ObjectKeyFromObject(d), u.eru("nginx"))), "nobody asked for another one")

	require.NoError(t, u.Delete(t.Context(), d))
	u.Gone(t, eru)
}
