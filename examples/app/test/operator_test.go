package test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/app/controller"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const (
	sampleFile = "../config/samples/app_v1_app.yaml"
	sampleName = "nginx-app"
)

var (
	cluster, apiServer = operatortest.ControlPlanes("../config/crd/bases", operatortest.EnforceOwnerReferences)

	scheme = operatortest.NewScheme(appv1.AddToScheme)
)

// startOperator starts the operator for some namespaces. It is stopped when the test ends.
func startOperator(t *testing.T, access *rest.Config, options ctrl.Options, namespaces ...string) *operatortest.Operator {
	t.Helper()
	options.Scheme = scheme
	if options.Cache.ByObject == nil {
		options.Cache = controller.Cache(namespaces...)
	}
	return operatortest.Start(t, access, options, &appv1.App{}, controller.SetupWithManager)
}

// user is the access of the test itself to a namespace, as an administrator.
type user struct{ *operatortest.User }

func newUser(t *testing.T, cp *controlplane.ControlPlane) *user {
	t.Helper()
	return &user{operatortest.NewUser(t, cp, scheme)}
}

func (u *user) app(name string) *appv1.App {
	return &appv1.App{ObjectMeta: u.Meta(name)}
}

// create creates an App as a user would, with the spec edited.
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

// set edits the spec of an App.
func (u *user) set(t *testing.T, name string, edit func(*appv1.AppSpec)) {
	t.Helper()
	operatortest.Change(t, u, u.app(name), func(app *appv1.App) { edit(&app.Spec) })
}

func (u *user) budget(name string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: u.Meta(name)}
}

// rollouts returns the number of different pod templates of an App so far.
func (u *user) rollouts(t *testing.T, name string) int {
	t.Helper()
	return u.Rollouts(t, client.MatchingLabels{"app.example.com/v1": name})
}

var status operatortest.StatusOf[*appv1.App] = func(app *appv1.App, conditionType string) (int64, metav1.Condition) {
	c, _ := controller.Conditions.Get(app.Status.Conditions, conditionType)
	return app.Status.ObservedGeneration, metav1.Condition{
		Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, Message: c.Message,
	}
}

// settled waits until the operator has observed the present spec and Ready has the given status. It returns the object.
func (u *user) settled(t *testing.T, name string, ready corev1.ConditionStatus) *appv1.App {
	t.Helper()
	return status.AwaitReady(t, u, u.app(name), metav1.ConditionStatus(ready))
}

// condition waits until a condition has a reason, and returns it.
func (u *user) condition(t *testing.T, name, conditionType, reason string) metav1.Condition {
	t.Helper()
	return status.AwaitReason(t, u, u.app(name), conditionType, reason)
}
