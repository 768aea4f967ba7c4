package reconciletest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// If a scenario sets one controller, the other default controllers still run.
func TestSimulatedControllersKeepTheOthers(t *testing.T) {
	s := of(idle)
	called := false
	s.SimulatedControllers = []reconciletest.SimulatedController{
		{For: &appsv1.StatefulSet{}, Step: func(context.Context, client.Client) error { called = true; return nil }},
	}
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"}, Spec: appsv1.StatefulSetSpec{
		Selector: deployment("web").Spec.Selector, Template: deployment("web").Spec.Template,
	}}
	s.Objects = []client.Object{deployment("web"), set}
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		assert.EqualValues(t, 1, get(t, env, deployment("web")).Status.ReadyReplicas, "Deployments are simulated still")
		assert.Zero(t, get(t, env, set).Status.ReadyReplicas, "StatefulSets are not")
	})
	assert.True(t, called)
}

// If the operator's scheme has few types, only the simulated controllers of these types run.
func TestSimulatedControllersFollowTheScheme(t *testing.T) {
	s := of(idle)
	s.Scheme = runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(s.Scheme))
	s.Scheme.AddKnownTypes(shopVersion, &Shop{}, &ShopList{})
	metav1.AddToGroupVersion(s.Scheme, shopVersion)
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) { env.Do(reconciletest.Create(shop())) })
}

func TestSimulatedControllerValidates(t *testing.T) {
	for says, c := range map[string]reconciletest.SimulatedController{
		"SimulatedControllers[0] does nothing: set its Step":              {},
		"SimulatedControllers[0] is for a kind that is not in its Scheme": {For: &metav1.PartialObjectMetadata{}},
		"SimulatedControllers[0] is for a nil object":                     {For: (*appsv1.Deployment)(nil)},
	} {
		s := twoFaults()
		s.SimulatedControllers = []reconciletest.SimulatedController{c}
		report := reconciletest.ExploreQuietly(t, s)
		require.Len(t, report.Failures, 1)
		assert.ErrorContains(t, report.Failures[0].Err, says)
	}
}

// If a simulated controller never stops changing something, the run ends with an error that names the cause.
func TestSimulatedControllerThatNeverRests(t *testing.T) {
	s := of(idle, reconciletest.Create(shop()))
	s.External = func() reconciletest.External { return &restless{} }
	report := reconciletest.ExploreQuietly(t, s)
	require.NotEmpty(t, report.Failures)
	assert.ErrorContains(t, report.Failures[0].Err, "the simulated controllers and the External do not become quiet")
}

type restless struct{}

func (*restless) State() any { return nil }
func (*restless) Step() bool { return true }

// TestSteppingExternal explores an operator that waits for a machine outside of the cluster. It also explores one that does not rent the
// machine again if the first attempt fails, so that it waits for ever.
func TestSteppingExternal(t *testing.T) {
	reconciletest.Explore(t, rents())

	forgets := of(func(p *reconciletest.Process) shopFunc {
		known := false
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			machines := p.External().(*cloud)
			if !known {
				known = true // also if the effect below fails
				if err := p.Effect(ctx, "rent machine "+s.Name, func() error {
					machines.created[s.Name] = time.Now()
					return nil
				}); err != nil {
					return ctrl.Result{}, err
				}
			}
			if !machines.ready[s.Name] {
				return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	}, reconciletest.Create(shop()))
	forgets.External, forgets.Horizon = newCloud, 2*time.Minute
	report := reconciletest.ExploreQuietly(t, forgets)
	require.NotEmpty(t, report.Failures)
	assert.NotEmpty(t, report.Failures[0].Faults, "without faults the machine becomes ready")
	assert.True(t, hasFault(report, reconciletest.Faults.ConnectionRefused))
}

// A panic of Step is an error of the scenario.
func TestSteppingExternalPanics(t *testing.T) {
	s := of(idle, reconciletest.Create(shop()))
	s.External = func() reconciletest.External { return panics{} }
	report := reconciletest.ExploreQuietly(t, s)
	require.NotEmpty(t, report.Failures)
	assert.ErrorContains(t, report.Failures[0].Err, "a step of the External: panic in it")
}

type panics struct{}

func (panics) State() any { return nil }
func (panics) Step() bool { panic(errors.New("no machine")) }
