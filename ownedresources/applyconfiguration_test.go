package ownedresources

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/opblocks/opblocks/internal/owned/ownedtest"
)

// configured returns a Deployment as an apply configuration. It sets a field to zero, which a Go struct would leave
// out.
func configured(owner *Shop) *appsv1ac.DeploymentApplyConfiguration {
	selector := map[string]string{"app": "web"}
	return appsv1ac.Deployment(owner.Name, owner.Namespace).WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(2).WithMinReadySeconds(0).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(selector).WithSpec(corev1ac.PodSpec().
			WithContainers(corev1ac.Container().WithName("web").WithImage("nginx:1.27")))))
}

func TestBuildApply(t *testing.T) {
	env := newEnvInMemory(t)
	build := func(owner *Shop) (*appsv1ac.DeploymentApplyConfiguration, error) { return configured(owner), nil }
	s := Ensure(BuildApply(&appsv1.Deployment{}, build))
	s.SetName("step")
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "LessReplicas")
	env.Requests.Sent()
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "LessReplicas")
	require.Equal(t, []string{"GET deployments"}, env.Requests.Sent(), "it is as desired")

	ownedtest.ByHand(t, env.Server, &appsv1.Deployment{}, func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5; d.Spec.Paused = true })
	requireWaits(t, s.Reconcile(t.Context(), env.Client, env.Owner), "LessReplicas")
	var live appsv1.Deployment
	env.Live(t, &live)
	require.Zero(t, live.Spec.MinReadySeconds, "the configuration sets the zero")
	require.True(t, live.Spec.Paused, "a field that it does not set stays")

	restarted := Ensure(BuildApply(&appsv1.Deployment{}, func(*Shop) (*appsv1ac.DeploymentApplyConfiguration, error) { return nil, nil }))
	restarted.SetName("step")
	require.NoError(t, restarted.Reconcile(t.Context(), env.Client, env.Owner))
	require.False(t, env.Exists(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}), "nil is no object")
}

func TestBuildApplyErrors(t *testing.T) {
	broken := errors.New("no image")
	tests := map[string]struct {
		reason  string
		child   AnyChild[*Shop]
		wantErr string
	}{
		"AnotherKind": {
			reason: "The sample decides how the live object is read.",
			child: BuildApply(&corev1.Service{}, func(owner *Shop) (*appsv1ac.DeploymentApplyConfiguration, error) {
				return configured(owner), nil
			}),
			wantErr: "apply configuration *v1.DeploymentApplyConfiguration is of apps/v1, Kind=Deployment, and the sample that was given with it of /v1, Kind=Service: give a sample of the same kind",
		},
		"Fails": {
			reason:  "The error of the function is returned.",
			child:   BuildApply(&appsv1.Deployment{}, func(*Shop) (*appsv1ac.DeploymentApplyConfiguration, error) { return nil, broken }),
			wantErr: "no image",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newEnvInMemory(t)
			require.EqualError(t, Ensure(test.child).Reconcile(t.Context(), env.Client, env.Owner), test.wantErr, test.reason)
		})
	}
}
