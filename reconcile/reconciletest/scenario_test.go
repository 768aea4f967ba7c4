package reconciletest_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

func idle(*reconciletest.Process) shopFunc {
	return func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil }
}

// Each error says in one sentence what is missing.
func TestExploreValidates(t *testing.T) {
	action := func(a reconciletest.Action) func(s *reconciletest.Scenario) {
		return func(s *reconciletest.Scenario) { s.Actions = append(s.Actions, a) }
	}
	var none *Shop
	tests := map[string]struct {
		edit    func(s *reconciletest.Scenario)
		options reconciletest.Options
		says    string
	}{
		"NoActions":    {edit: func(s *reconciletest.Scenario) { s.Actions = nil }, says: "the scenario has no Actions"},
		"NoScheme":     {edit: func(s *reconciletest.Scenario) { s.Scheme = nil }, says: "the scenario has no Scheme"},
		"NoStart":      {edit: func(s *reconciletest.Scenario) { s.Start = nil }, says: "the scenario has no Start"},
		"NilObject":    {edit: func(s *reconciletest.Scenario) { s.Objects = []client.Object{none} }, says: "Objects[0] is nil"},
		"ZeroAction":   {edit: action(reconciletest.Action{}), says: `Actions[2]: the action "" does nothing`},
		"CreateOfNil":  {edit: action(reconciletest.Create(nil)), says: "Actions[2]: Create(nil)"},
		"NilPointer":   {edit: action(reconciletest.Create(none)), says: "Actions[2]: Create(nil)"},
		"ChangeOfNil":  {edit: action(reconciletest.Change(none, func(*Shop) {})), says: "Actions[2]: Change with nil"},
		"NilChange":    {edit: action(reconciletest.Change(shop(), nil)), says: "Actions[2]: Change with nil"},
		"DeleteOfNil":  {edit: action(reconciletest.Delete(nil)), says: "Actions[2]: Delete(nil)"},
		"NilDo":        {edit: action(reconciletest.Do("nothing", nil)), says: `Actions[2]: the action "nothing" does nothing`},
		"NegativeWait": {edit: action(reconciletest.Wait(-time.Second)), says: "Actions[2]: Wait(-1s)"},
		"Limit":        {options: reconciletest.Options{Limit: -1}, says: "the option Limit is -1: give it 1 or more"},
		"Pairs":        {options: reconciletest.Options{Pairs: -1}, says: "the option Pairs is -1: give it 1 or more"},
		"Budget":       {options: reconciletest.Options{Budget: -time.Second}, says: "the option Budget is -1s: give it a duration above zero"},
		"IgnoredPath": {
			edit: func(s *reconciletest.Scenario) {
				s.Ignore.Fields = map[string][]string{"Shop": {"status.history[*"}}
			},
			says: `the scenario's Ignore.Fields["Shop"] has the path "status.history[*": give it one such as status.history[*].time`,
		},
		"HeartbeatPath": {
			edit: func(s *reconciletest.Scenario) { s.Heartbeats = map[string][]string{"Shop": {""}} },
			says: `the scenario's Heartbeats["Shop"] has the path ""`,
		},
		"EmptyFault": {
			options: reconciletest.Options{SkipFaults: []reconciletest.FaultKind{reconciletest.Faults.Stale, {}}},
			says:    "the option SkipFaults[1] is empty: give it a field of Faults",
		},
		"EmptyFinding": {
			options: reconciletest.Options{SkipFindings: []reconciletest.FindingKind{{}}},
			says:    "the option SkipFindings[0] is empty: give it a field of Findings",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := twoFaults()
			if tc.edit != nil {
				tc.edit(&s)
			}
			report := reconciletest.ExploreQuietly(t, with(s, tc.options))
			require.Len(t, report.Failures, 1)
			assert.Contains(t, report.String(), "The scenario could not be run.\n\n")
			assert.Contains(t, report.String(), tc.says)
			assert.Zero(t, report.Runs)
		})
	}
}

// If a scenario fails without faults, the report says why.
func TestScenarioFailsWithoutFaults(t *testing.T) {
	tests := map[string]struct {
		edit func(s *reconciletest.Scenario)
		says string
	}{
		"NoCRD":    {func(s *reconciletest.Scenario) { s.CRDs = nil }, "has no kind Shop"},
		"NoFolder": {func(s *reconciletest.Scenario) { s.CRDs = []string{"nowhere"} }, "nowhere"},
		"NothingToRun": {
			func(s *reconciletest.Scenario) { s.Start = func(*reconciletest.Process) error { return nil } },
			"there is nothing to run",
		},
		"StartFails": {
			func(s *reconciletest.Scenario) {
				s.Start = func(*reconciletest.Process) error { return context.DeadlineExceeded }
			}, "start: context deadline exceeded",
		},
		"ActionFails": {
			func(s *reconciletest.Scenario) {
				s.Actions = []reconciletest.Action{reconciletest.Delete(shop())}
			}, `the action "delete Shop default/web"`,
		},
		"FinallyFails": {
			func(s *reconciletest.Scenario) {
				s.Always = func(env *reconciletest.Env) error {
					return client.IgnoreNotFound(env.Get(context.Background(), client.ObjectKeyFromObject(shop()), &corev1.Node{}))
				}
				s.Finally = func(*reconciletest.Env) error { return context.Canceled }
			}, "what must hold at the end does not: context canceled",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := twoFaults()
			tc.edit(&s)
			report := reconciletest.ExploreQuietly(t, s)
			require.NotEmpty(t, report.Failures)
			assert.Empty(t, report.Failures[0].Faults)
			assert.Contains(t, report.String(), tc.says)
		})
	}
}

func TestObjectsHaveTheirStatus(t *testing.T) {
	s := of(idle)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	s.Objects = []client.Object{shop(func(s *Shop) { s.Status.Phase = "Open" }), node}
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		is := shop()
		require.NoError(t, env.Get(t.Context(), client.ObjectKeyFromObject(is), is))
		assert.Equal(t, "Open", is.Status.Phase)
		require.NoError(t, env.Get(t.Context(), client.ObjectKeyFromObject(node), node))
		assert.Equal(t, "v1.36.3", node.Status.NodeInfo.KubeletVersion)
	})
}

// A run follows delays for as long as Horizon says, even if the passes change nothing for a long time.
func TestHorizon(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if time.Since(s.CreationTimestamp.Time) < time.Minute {
				return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
			}
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
		}
	}, reconciletest.Create(shop()))
	s.Horizon = 2 * time.Minute
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		is := shop()
		require.NoError(t, env.Get(t.Context(), client.ObjectKeyFromObject(is), is))
		assert.Equal(t, "Open", is.Status.Phase)
	})
	reconciletest.Explore(t, s)
}
