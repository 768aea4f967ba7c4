package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

const (
	crds       = "../config/crd/bases"
	sampleFile = "../config/samples/app_v1_app.yaml"
	sampleName = "nginx-app"
)

var (
	// cluster has all controllers and simulated nodes; on apiServer nobody but us writes anything.
	cluster   = operatortest.WithCRDs(crds, controlplanetest.Shared(controlplane.WithControllers()))
	apiServer = operatortest.WithCRDs(crds, controlplanetest.Shared())

	scheme = operatortest.NewScheme(appv1.AddToScheme)
)

// startOperator starts the operator for some namespaces; it is stopped when the test ends.
func startOperator(t *testing.T, access *rest.Config, options ctrl.Options, namespaces ...string) *operatortest.Operator {
	t.Helper()
	options.Scheme = scheme
	if options.Cache.ByObject == nil {
		options.Cache = controller.Cache(namespaces...)
	}
	return operatortest.Start(t, access, options, &appv1.App{}, controller.SetupWithManager)
}

// user is the test's own access to one namespace, as an administrator.
type user struct{ *operatortest.User }

func newUser(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	return &user{operatortest.NewUser(t, cp, scheme)}
}

func (u *user) app(name string) *appv1.App {
	return &appv1.App{ObjectMeta: u.Meta(name)}
}

// create creates an App as a user would, with what the edits say.
func (u *user) create(t *testing.T, name string, edits ...func(*appv1.AppSpec)) *appv1.App {
	t.Helper()
	app := u.app(name)
	app.Spec = appv1.AppSpec{
		Replicas: new(int32(1)),
		Image:    "nginx:1.16.1",
		Ports:    []corev1.ServicePort{{Port: 8080, TargetPort: intstr.FromInt32(80)}},
	}
	for _, edit := range edits {
		edit(&app.Spec)
	}
	require.NoError(t, u.Create(t.Context(), app))
	return app
}

// set edits an App's spec.
func (u *user) set(t *testing.T, name string, edit func(*appv1.AppSpec)) {
	t.Helper()
	operatortest.Change(t, u, u.app(name), func(app *appv1.App) { edit(&app.Spec) })
}

func (u *user) budget(name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: u.Meta(name)}
}

// rollouts is how many versions of the pods there have been.
func (u *user) rollouts(t *testing.T, name string) int {
	t.Helper()
	var list appsv1.ReplicaSetList
	require.NoError(t, u.List(t.Context(), &list, client.InNamespace(u.Namespace), client.MatchingLabels{"app.example.com/v1": name}))
	return len(list.Items)
}

// settled waits until the status is about the present spec, and Ready or not as expected, and gives the object.
func (u *user) settled(t *testing.T, name string, ready corev1.ConditionStatus) *appv1.App {
	t.Helper()
	app := u.app(name)
	operatortest.Eventually(t, "Ready is "+string(ready), func(c *assert.CollectT) {
		operatortest.Live(c, u, app)
		assert.Equal(c, app.Generation, app.Status.ObservedGeneration)
		got, _ := controller.Conditions.Get(app.Status.Conditions, conditions.Ready)
		assert.Equal(c, ready, got.Status, "%s: %s", got.Reason, got.Message)
	})
	return app
}

// condition waits until a condition has that reason, and gives it.
func (u *user) condition(t *testing.T, name, conditionType, reason string) appsv1.DeploymentCondition {
	t.Helper()
	var got appsv1.DeploymentCondition
	app := u.app(name)
	operatortest.Eventually(t, conditionType+" is "+reason, func(c *assert.CollectT) {
		operatortest.Live(c, u, app)
		got, _ = controller.Conditions.Get(app.Status.Conditions, conditionType)
		assert.Equal(c, reason, got.Reason, "%s: %s", got.Status, got.Message)
	})
	return got
}
