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
	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
	"github.com/opblocks/opblocks/ownedresources/workload"
)

const crds = "../config/crd/bases"

var (
	// cluster has all controllers and simulated nodes; on apiServer nobody but us writes anything.
	cluster   = operatortest.WithCRDs(crds, controlplanetest.Shared(controlplane.WithControllers()))
	apiServer = operatortest.WithCRDs(crds, controlplanetest.Shared())

	scheme = operatortest.NewScheme(eruv1.AddToScheme)

	// noon and four are the times that tests on a clock of their own begin at, and wait for.
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	four = time.Date(2026, 3, 2, 4, 0, 0, 0, time.UTC)
)

// realTime is the operator as it is by default.
var realTime = restarts.Restarts{Clock: clock.RealClock{}}

// stepped is an operator whose clock the test holds.
func stepped() (restarts.Restarts, *clocktesting.FakePassiveClock) {
	c := clocktesting.NewFakePassiveClock(noon)
	return restarts.Restarts{Clock: c}, c
}

// startOperator starts the operator for some namespaces; it is stopped when the test ends.
func startOperator(t testing.TB, r restarts.Restarts, access *rest.Config, options ctrl.Options, namespaces ...string) *operatortest.Operator {
	t.Helper()
	options.Scheme = scheme
	options.Cache = controller.Cache(namespaces...)
	return operatortest.Start(t, access, options, &eruv1.Eru{}, func(mgr ctrl.Manager) error {
		return controller.SetupWithManager(mgr, r)
	})
}

// user is the test's own access to one namespace, as an administrator.
type user struct{ *operatortest.User }

func newUser(t testing.TB, cp *controlplane.ControlPlane) *user {
	t.Helper()
	return &user{operatortest.NewUser(t, cp, scheme)}
}

func (u *user) eru(name string) *eruv1.Eru { return &eruv1.Eru{ObjectMeta: u.Meta(name)} }

// enabled is the spec of an Eru that follows a schedule.
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

// set edits an Eru's spec.
func (u *user) set(t testing.TB, name string, edit func(*eruv1.EruSpec)) {
	t.Helper()
	operatortest.Change(t, u, u.eru(name), func(eru *eruv1.Eru) { edit(&eru.Spec) })
}

// deploy creates a Deployment with two pods, which asks for an Eru or does not.
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

// rollOut does what the Deployment controller would have done in the end.
func (u *user) rollOut(t require.TestingT, name string) {
	d := operatortest.Live(t, u, u.Deployment(name))
	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: "True"}, {Type: appsv1.DeploymentProgressing, Status: "True", Reason: "NewReplicaSetAvailable"},
		},
	}
	require.NoError(t, u.Status().Update(context.Background(), d))
}

// roll does what the Deployment controller would have done in the middle.
func (u *user) roll(t require.TestingT, name string) {
	d := operatortest.Live(t, u, u.Deployment(name))
	d.Status.ObservedGeneration, d.Status.UpdatedReplicas = d.Generation, 1
	require.NoError(t, u.Status().Update(context.Background(), d))
}

// rolledOut is a Deployment where nobody but us writes anything.
func (u *user) rolledOut(t testing.TB, name string, asks bool) {
	t.Helper()
	u.deploy(t, name, asks)
	u.rollOut(t, name)
}

// restartedAt is the time that a Deployment's pods were told to be replaced for.
func (u *user) restartedAt(t require.TestingT, name string) string {
	return operatortest.Live(t, u, u.Deployment(name)).Spec.Template.Annotations[workload.AnnotationRestartedAt]
}

// pods gives the names of a Deployment's pods that are not terminating, in order.
func (u *user) pods(t require.TestingT, deployment string) (names []string) {
	var list corev1.PodList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace), client.MatchingLabels{"app": deployment}))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

// rollouts is how many versions of a Deployment's pods there have been.
func (u *user) rollouts(t require.TestingT, deployment string) int {
	var list appsv1.ReplicaSetList
	require.NoError(t, u.List(context.Background(), &list, client.InNamespace(u.Namespace), client.MatchingLabels{"app": deployment}))
	return len(list.Items)
}

// state is the phase and the last condition.
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

// becomes waits until an Eru is in a state, told about its present spec, and gives it.
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

// events gives the reasons of the events about an object.
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
