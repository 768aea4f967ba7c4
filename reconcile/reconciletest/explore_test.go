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

// twoFaults is an operator that survives every single fault: its second attempt to drop the account is its
// last one.
func twoFaults() reconciletest.Scenario {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if s.DeletionTimestamp == nil {
				if err := ensureFinalizer(ctx, c, s); err != nil {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
			}
			for range 2 {
				if accountsOf(p).drop(ctx, s.Name) == nil {
					break
				}
			}
			return ctrl.Result{}, removeFinalizer(ctx, c, s)
		}
	}, createAndDelete...)
	s.External = newAccounts
	return s
}

func TestPairs(t *testing.T) {
	assert.Empty(t, reconciletest.ExploreQuietly(t, twoFaults()).Failures, "one fault is not enough")

	report := reconciletest.ExploreQuietly(t, twoFaults(), reconciletest.Depth(2), reconciletest.Limit(100_000))
	require.NotEmpty(t, report.Failures)
	assert.Len(t, report.Failures[0].Faults, 2)
	assert.Contains(t, report.String(), "connection refused at: effect drop account web #1; connection refused at: effect drop account web #2")
}

func TestSample(t *testing.T) {
	some := func(seed uint64) *reconciletest.Report {
		return reconciletest.ExploreQuietly(t, twoFaults(), reconciletest.Depth(2), reconciletest.Limit(20), reconciletest.Seed(seed))
	}
	one, again := some(7), some(7)
	assert.Equal(t, one.Runs, again.Runs)
	assert.Equal(t, one.Pairs, again.Pairs)
	assert.Equal(t, one.Survived, again.Survived, "a seed chooses the same sample again")
	assert.Equal(t, len(one.Failures), len(again.Failures))
	assert.EqualValues(t, 7, one.Seed)
}

func TestReplay(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, twoFaults(), reconciletest.Replay("crash after: effect drop account web #1"))
	assert.Empty(t, report.Failures)
	assert.Equal(t, 2, report.Runs, "without faults, and with these")
	assert.Contains(t, report.String(), "it is done, and the process dies before it gets the answer")
	assert.Contains(t, report.String(), "process 2 starts")

	for name, fault := range map[string]string{
		"users' requests are none of the operator's": "crash after: create Shop default/web #1",
		"there is no next action":                    "crash with downtime after: effect drop account web #1",
	} {
		report = reconciletest.ExploreQuietly(t, twoFaults(), reconciletest.Replay(fault))
		assert.Contains(t, report.String(), "replay: 1 of 1 fault did not strike", name)
	}

	report = reconciletest.ExploreQuietly(t, twoFaults(), reconciletest.Replay("nonsense"))
	assert.NotEmpty(t, report.Failures)
}

func TestReplayByTheEnvironment(t *testing.T) {
	t.Setenv("RECONCILETEST_REPLAY", "crash before: update Shop default/web #1")
	assert.Equal(t, 2, reconciletest.ExploreQuietly(t, twoFaults()).Runs)
}

// A run is the same again: the trace is.
func TestDeterministic(t *testing.T) {
	const faults = "leader change before: effect drop account web #1"
	first := reconciletest.ExploreQuietly(t, twoFaults(), reconciletest.Replay(faults)).Replayed
	for range 20 {
		require.Equal(t, first, reconciletest.ExploreQuietly(t, twoFaults(), reconciletest.Replay(faults)).Replayed)
	}
}

func TestWhatIsWrongWithAScenario(t *testing.T) {
	tests := map[string]struct {
		edit func(s *reconciletest.Scenario)
		says string
	}{
		"no definition": {func(s *reconciletest.Scenario) { s.CRDs = nil }, "has no kind Shop"},
		"no folder":     {func(s *reconciletest.Scenario) { s.CRDs = []string{"nowhere"} }, "nowhere"},
		"nothing to run": {
			func(s *reconciletest.Scenario) { s.Start = func(*reconciletest.Process) error { return nil } },
			"there is nothing to run",
		},
		"start fails": {
			func(s *reconciletest.Scenario) {
				s.Start = func(*reconciletest.Process) error { return context.DeadlineExceeded }
			}, "start: context deadline exceeded",
		},
		"an action fails": {
			func(s *reconciletest.Scenario) {
				s.Actions = []reconciletest.Action{reconciletest.Delete(shop())}
			}, `the action "delete Shop default/web"`,
		},
		"always": {
			func(s *reconciletest.Scenario) {
				s.Always = func(w *reconciletest.Env) error {
					return client.IgnoreNotFound(w.Get(context.Background(), client.ObjectKeyFromObject(shop()), &corev1.Node{}))
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

// Time passes as it is asked for, and what is due meanwhile happens.
func TestWait(t *testing.T) {
	s := of(func(p *reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			due := s.CreationTimestamp.Add(24 * time.Hour)
			if left := time.Until(due); left > 0 {
				return ctrl.Result{RequeueAfter: left}, nil
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	}, reconciletest.Create(shop()))
	reconciletest.Run(t, s, func(t *testing.T, w *reconciletest.Env) {
		w.RequestLog.AssertWrites(t)
		w.Do(reconciletest.Wait(23 * time.Hour))
		w.RequestLog.AssertWrites(t)
		w.Do(reconciletest.Wait(2 * time.Hour))
		w.RequestLog.AssertWrites(t, "update Shop/status default/web")
	})
	s.Actions = append(s.Actions, reconciletest.Wait(25*time.Hour))
	reconciletest.Explore(t, s)
}

// What a pass waits for comes while it waits.
func TestPassThatWaits(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := ensure(ctx, c, s, owned(c, s, s.Name, nil)); err != nil {
				return ctrl.Result{}, err
			}
			for is := config(s.Name); c.Get(ctx, client.ObjectKeyFromObject(is), is) != nil; {
				select {
				case <-ctx.Done():
					return ctrl.Result{}, ctx.Err()
				case <-time.After(10 * time.Millisecond):
				}
			}
			return ctrl.Result{}, open(ctx, c, s, "Open")
		}
	}, reconciletest.Create(shop()))
	reconciletest.Explore(t, s)
}

func TestPassThatDoesNotEnd(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
			<-ctx.Done()
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop()))
	assert.Contains(t, reconciletest.ExploreQuietly(t, s).String(), "has not ended after 1h0m0s")
}

func TestDeployments(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil }
	})
	s.Objects = []client.Object{deployment("web")}
	reconciletest.Run(t, s, func(t *testing.T, w *reconciletest.Env) {
		podNames := func() (names []string) {
			var pods corev1.PodList
			require.NoError(t, w.List(t.Context(), &pods))
			for _, p := range pods.Items {
				assert.True(t, metav1.IsControlledBy(&p, get(t, w, deployment("web"))))
				names = append(names, p.Name)
			}
			return names
		}
		before := podNames()
		require.Len(t, before, 1)
		assert.EqualValues(t, 1, get(t, w, deployment("web")).Status.ReadyReplicas)

		d := get(t, w, deployment("web"))
		d.Spec.Replicas = new(int32(2))
		require.NoError(t, w.Update(t.Context(), d))
		w.Do(reconciletest.Wait(time.Second))
		require.Len(t, podNames(), 2)
		assert.Contains(t, podNames(), before[0], "scaling replaces nothing")

		d = get(t, w, deployment("web"))
		d.Spec.Template.Spec.Containers[0].Image = "nginx:2"
		require.NoError(t, w.Update(t.Context(), d))
		w.Do(reconciletest.Wait(time.Second))
		require.Len(t, podNames(), 2)
		assert.NotContains(t, podNames(), before[0], "a new template replaces all")
		d = get(t, w, deployment("web"))
		assert.EqualValues(t, 2, d.Status.ReadyReplicas)
		assert.Equal(t, d.Generation, d.Status.ObservedGeneration)

		w.Do(reconciletest.Delete(deployment("web")))
		assert.Empty(t, podNames(), "the garbage collector takes them")
	})
}

func get[T client.Object](t *testing.T, w *reconciletest.Env, obj T) T {
	t.Helper()
	require.NoError(t, w.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	return obj
}

// An action that needs what the operator makes comes when that is there, whatever goes wrong before.
func TestActionThatNeedsTheOperator(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			for _, name := range []string{"a", "b"} {
				if err := ensure(ctx, c, s, owned(c, s, name, nil)); client.IgnoreAlreadyExists(err) != nil {
					return ctrl.Result{}, err
				}
			}
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop()), reconciletest.Delete(config("b")))
	reconciletest.Explore(t, s, reconciletest.Depth(2))
}
