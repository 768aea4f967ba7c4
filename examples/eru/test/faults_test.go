package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/conditions"
	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/examples/eru/controller"
	"github.com/opblocks/opblocks/examples/eru/restarts"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
	"github.com/opblocks/opblocks/reconcile"
)

// start returns the two controllers of a new process as one: both reconcile what has the name.
func start(clock *clocktesting.FakePassiveClock) func(client.Client) ctrlreconcile.Reconciler {
	return func(c client.Client) ctrlreconcile.Reconciler {
		deployments := reconcile.New(c, controller.DeploymentSteps()...).WithoutStatus()
		erus := reconcile.New(c, controller.EruSteps(restarts.Restarts{Clock: clock, MaxConcurrent: 1})...).WithClock(clock).
			WithHistory(func(eru *eruv1.Eru) conditions.List { return eru.History(clock.Now) })
		return ctrlreconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
			if _, err := deployments.Reconcile(ctx, request); err != nil {
				return ctrl.Result{}, err
			}
			return erus.Reconcile(ctx, request)
		})
	}
}

// actions cover everything that the operator reacts to.
func actions(u *user, clock *clocktesting.FakePassiveClock) []operatortest.Action {
	set := func(edit func(*eruv1.EruSpec)) func(*testing.T) { return func(t *testing.T) { u.set(t, "web", edit) } }
	change := func(edit func(*appsv1.Deployment)) func(*testing.T) {
		return func(t *testing.T) { operatortest.Change(t, u, u.Deployment("web"), edit) }
	}
	at := func(moment time.Time) func(*testing.T) { return func(*testing.T) { clock.SetTime(moment) } }
	rollOut := func(t *testing.T) { u.rollOut(t, "web") }
	return []operatortest.Action{
		{Name: "asked for", Do: func(t *testing.T) { u.deploy(t, "web", true) }},
		{Name: "rolled out", Do: rollOut},
		{Name: "enabled", Do: set(func(s *eruv1.EruSpec) { s.Enabled, s.Schedule = true, "0 4 * * *" })},
		{Name: "due", Do: at(four)},
		{Name: "rolled out again", Do: rollOut},
		{Name: "due after two days", Do: at(four.Add(49 * time.Hour))},
		{Name: "seen to roll out", Do: func(t *testing.T) { u.roll(t, "web") }},
		{Name: "due while it rolls out", Do: at(four.Add(72 * time.Hour))},
		{Name: "rolled out at last", Do: rollOut},
		{Name: "paused", Do: change(func(d *appsv1.Deployment) { d.Spec.Paused = true })},
		{Name: "due while paused", Do: at(four.Add(96 * time.Hour))},
		{Name: "no longer paused", Do: change(func(d *appsv1.Deployment) { d.Spec.Paused = false })},
		{Name: "seen to be so", Do: rollOut},
		{Name: "withdrawn", Do: change(func(d *appsv1.Deployment) { d.Annotations = nil })},
		{Name: "due while withdrawn", Do: at(four.Add(120 * time.Hour))},
		{Name: "asked for again", Do: change(func(d *appsv1.Deployment) { d.Annotations = map[string]string{eruv1.AnnotationEru: "true"} })},
		{Name: "not valid", Do: set(func(s *eruv1.EruSpec) { s.Schedule = "TZ=UTC" })},
		{Name: "valid again", Do: set(func(s *eruv1.EruSpec) { s.Schedule = "@every 1h" })},
		{Name: "seen to be asked for", Do: rollOut},
		{Name: "due once more", Do: at(four.Add(121 * time.Hour))},
	}
}

// run runs the scenario with a fault. It returns the final state, and the number of writes that the operator tried.
func run(t *testing.T, f operatortest.Fault) (final string, writes int) {
	t.Helper()
	u := newUser(t, apiServer(t))
	history := operatortest.NewHistory(u.User, nil)
	clock := clocktesting.NewFakePassiveClock(noon)
	scenario := operatortest.Scenario{Start: start(clock), Key: client.ObjectKey{Namespace: u.Namespace, Name: "web"}, Actions: actions(u, clock)}
	writes = scenario.Run(t, history, f)
	return history.Describe(t, func(obj client.Object) any {
		switch obj := obj.(type) {
		case *appsv1.Deployment:
			return []any{obj.Generation, obj.Spec.Template.Annotations} // each restart makes a generation
		case *eruv1.Eru:
			return []any{len(obj.OwnerReferences), obj.Annotations, obj.Spec, obj.Status}
		}
		return nil
	}), writes
}

// TestFaults runs the scenario with crashes at every write: the final state is always the same, and nothing is restarted twice.
// With stale reads the operator may take a rollout for one that is still in progress, and skip a due time, as its history shows;
// but it restarts nothing that it would not restart otherwise.
func TestFaults(t *testing.T) {
	want, writes := run(t, operatortest.Fault{})
	t.Logf("%d writes; in the end:\n%s", writes, want)
	for _, part := range []string{
		`"kubectl.kubernetes.io/restartedAt":"2026-03-07T05:00:00Z"`, `"lastRolloutResult":"InProgress"`, `"missedRuns":1`,
		"SkippedRolloutInProgress", "SkippedDeploymentPaused", "RolloutComplete", "AnnotationRemoved", "InvalidSchedule",
	} {
		require.Contains(t, want, part, "without a fault all is as wanted")
	}
	// Created, paused, no longer paused, withdrawn, asked for again, and restarted three times.
	require.Equal(t, 8, generation(t, want))
	operatortest.EachFault(t, writes, func(t *testing.T, f operatortest.Fault) {
		got, _ := run(t, f)
		if f.Lag == 0 {
			assert.Equal(t, want, got)
			return
		}
		assert.LessOrEqual(t, generation(t, got), 8)
		for _, part := range []string{`"phase":"Running"`, `"lastScheduleTime":"2026-03-07T05:00:00Z"`, `"nextScheduleTime":"2026-03-07T06:00:00Z"`, `"missedRuns":1`} {
			assert.Contains(t, got, part)
		}
	})
}

// generation returns the generation of the Deployment in a description.
func generation(t *testing.T, described string) (n int) {
	t.Helper()
	_, after, _ := strings.Cut(described, "[")
	_, after, _ = strings.Cut(after, "\t[")
	_, err := fmt.Sscanf(after, "%d", &n)
	require.NoError(t, err)
	return n
}
