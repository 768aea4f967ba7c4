package test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/ownedresources/workload"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

var (
	cluster, apiServer = operatortest.ControlPlanes("../config/crd/bases")

	scheme = operatortest.NewScheme(eruv1.AddToScheme)

	// noon is when the clock of a test starts, and four is when a schedule of "0 4 * * *" is due next.
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	four = time.Date(2026, 3, 2, 4, 0, 0, 0, time.UTC)
)

// realTime are the settings of an operator by default.
var realTime = restarts.Restarts{Clock: clock.RealClock{}}

// stepped returns the settings of an operator with a clock that the test sets.
func stepped() (restarts.Restarts, *clocktesting.FakePassiveClock) {
	c := clocktesting.NewFakePassiveClock(noon)
	return restarts.Restarts{Clock: c}, c
}

// startOperator starts the operator for some namespaces. It is stopped when the test ends.
func startOperator(t testing.TB, r restarts.Restarts, access *rest.Config, options ctrl.Options, namespaces ...string) *operatortest.Operator {
	t.Helper()
	options.Scheme = scheme
	options.Cache = controller.Cache(namespaces...)
	return operatortest.Start(t, access, options, &eruv1.Eru{}, func(mgr ctrl.Manager) error {
		return controller.SetupWithManager(mgr, r)
	})
}

// user is the access of the test itself to a namespace, as an administrator.
type user struct{ *operatortest.User }

func newUser(t testing.TB, cp *controlplane.ControlPlane) *user {
	t.Helper()
	return &user{operatortest.NewUser(t, cp, scheme)}
}

func (u *user) eru(name string) *eruv1.Eru { return &eruv1.Eru{ObjectMeta: u.Meta(name)} }

// enabled returns the spec of an Eru whose schedule runs.
func enabled(deployment, schedule string) eruv1.EruSpec {
	return eruv1.EruSpec{DeploymentName: deployment, Enabled: true, Schedule: schedule}
}

// create creates an Eru as a user would.
func (u *user) create(t testing.TB, name string, spec eruv1.EruSpec) *eruv1.Eru {
	t.Helper()
	eru := u.eru(name)
	eru.Spec = spec
	require.NoError(t, u.Create(context.Background(), eru))
	return eru
}

// set edits the spec of an Eru.
func (u *user) set(t testing.TB, name string, edit func(*eruv1.EruSpec)) {
	t.Helper()
	operatortest.Change(t, u, u.eru(name), func(eru *eruv1.Eru) { edit(&eru.Spec) })
}

// deploy creates a Deployment with two pods. It requests an Eru if asks is true.
func (u *user) deploy(t testing.TB, name string, asks bool) *appsv1.Deployment {
	t.Helper()
	d := u.Deployment(name)
	if asks {
		d.Annotations = map[string]string{eruv1.AnnotationEru: "true"}
	}
	labels := map[string]string{"app": name}
	d.Spec.Replicas = new(int32(2))
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template = corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
	require.NoError(t, u.Create(context.Background(), d))
	return d
}

// rollOut writes the status that the Deployment controller writes when a rollout is complete.
func (u *user) rollOut(t require.TestingT, name string) {
	u.completeRollout(t, operatortest.Live(t, u, u.Deployment(name)))
}

func (u *user) completeRollout(t require.TestingT, d *appsv1.Deployment) {
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: "True"}, {Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"},
		},
	}
	require.NoError(t, u.Status().Update(context.Background(), d))
}

// rolledOut creates a Deployment that has rolled out, where no controller runs.
func (u *user) rolledOut(t testing.TB, name string, asks bool) {
	t.Helper()
	u.completeRollout(t, u.deploy(t, name, asks))
}

// restartedAt returns the due time of the last restart, as the Deployment has it.
func (u *user) restartedAt(t require.TestingT, name string) string {
	return operatortest.Live(t, u, u.Deployment(name)).Spec.Template.Annotations[workload.AnnotationRestartedAt]
}

// pods returns the names of a Deployment's pods, sorted, without those that are terminating.
func (u *user) pods(t require.TestingT, deployment string) []string {
	return u.PodNames(t, client.MatchingLabels{"app": deployment})
}

// rollouts returns the number of different pod templates of a Deployment so far.
func (u *user) rollouts(t require.TestingT, deployment string) int {
	return u.Rollouts(t, client.MatchingLabels{"app": deployment})
}

// state returns the phase and the last condition.
func state(eru *eruv1.Eru) string {
	last := eru.LastCondition()
	ready := "false"
	if last.Ready {
		ready = "true"
	}
	return eru.Status.Phase + ": " + last.Type + " " + ready + " " + last.Reason
}

const (
	created   = "Stoping: Created true create eru cr success,wait to start"
	scheduled = "Running: Scheduled true Scheduled"
	restarted = "Running: Restarted true RolloutComplete"
	disabled  = "Stoping: Stopped true Disabled"
	withdrawn = "Stoping: Stopped true AnnotationRemoved"
	missing   = "Stoping: Valid false DeploymentNotFound"
)

// becomes waits until the operator has observed the present spec and the Eru has the given state. It returns the Eru.
func (u *user) becomes(t testing.TB, name, want string) *eruv1.Eru {
	t.Helper()
	eru := u.eru(name)
	operatortest.Eventually(t, name+" becomes "+want, func(c *assert.CollectT) {
		operatortest.Live(c, u, eru)
		assert.Equal(c, want, state(eru), eru.LastCondition().Message)
		assert.Equal(c, eru.Generation, eru.Status.ObservedGeneration)
	})
	return eru
}

// restarts waits until the Deployment of the same name was restarted for a due time after the given one, and the history of the Eru
// shows the end of a rollout. It returns the Eru. Unlike [user.becomes] it does not need the end to be the last condition: on a
// busy machine the next restart may be due by then.
func (u *user) restarts(t testing.TB, name, after string) *eruv1.Eru {
	t.Helper()
	eru := u.eru(name)
	operatortest.Eventually(t, name+" restarts its Deployment", func(c *assert.CollectT) {
		operatortest.Live(c, u, eru)
		assert.True(c, slices.ContainsFunc(eru.Status.Conditions, func(condition eruv1.EruCondition) bool {
			one := &eruv1.Eru{Status: eruv1.EruStatus{Phase: eru.Status.Phase, Conditions: []eruv1.EruCondition{condition}}}
			return state(one) == restarted && condition.Message > after
		}), "%+v", eru.Status)
		assert.Equal(c, eru.Generation, eru.Status.ObservedGeneration)
		assert.Greater(c, u.restartedAt(c, name), after)
	})
	return eru
}

// events returns the reasons of the events on an object.
func (u *user) events(t require.TestingT, kind, name string) (reasons []string) {
	var list corev1.EventList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace)))
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && e.InvolvedObject.Name == name {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}
