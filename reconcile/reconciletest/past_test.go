package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// The past is shown for a pass over every object, whichever comes first.
func TestThePastOfEachObject(t *testing.T) {
	for _, other := range []string{"aaa", "zzz"} {
		t.Run(other, func(t *testing.T) {
			s := faultyEffects["effect for what is long gone"].scenario(false)
			s.Objects = []client.Object{shop(func(s *Shop) { s.Name = other })}
			assert.True(t, hasFault(reconciletest.ExploreQuietly(t, s), reconciletest.TimeTravel))
		})
	}
}

func TestStaleForLongIsForTwoPasses(t *testing.T) {
	passes := map[string]int{}
	count := func(fault reconciletest.FaultKind) string { return string(fault) + ": added ConfigMap default/web #1" }
	for _, kind := range []reconciletest.FaultKind{reconciletest.Stale, reconciletest.StaleLong} {
		s := of(func(*reconciletest.Process) shopFunc {
			return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				is := config(s.Name)
				if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err == nil {
					return ctrl.Result{}, nil
				}
				passes[string(kind)]++
				return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, owned(c, s, s.Name, nil)))
			}
		}, reconciletest.Create(shop()))
		assert.Empty(t, reconciletest.ExploreQuietly(t, s, reconciletest.Replay(count(kind))).Failures)
	}
	assert.Equal(t, passes[string(reconciletest.Stale)]+1, passes[string(reconciletest.StaleLong)])
}

// A failure that is told by a cache that was older than the process says how to mend that.
func TestThePastIsExplained(t *testing.T) {
	report := reconciletest.ExploreQuietly(t, faultyEffects["effect for what is long gone"].scenario(false)).String()
	assert.Contains(t, report, "it must read what that")
	assert.Contains(t, report, "modified Shop default/web #2 (metadata.deletionTimestamp")
}

func TestWithout(t *testing.T) {
	s := faultyEffects["effect for what is long gone"].scenario(false)
	report := reconciletest.ExploreQuietly(t, s, reconciletest.SkipFaults(reconciletest.TimeTravel))
	assert.False(t, hasFault(report, reconciletest.TimeTravel))
	assert.Equal(t, []reconciletest.FaultKind{reconciletest.TimeTravel}, report.Skipped)

	report = reconciletest.ExploreQuietly(t, s, reconciletest.SkipFaults("earthquake"))
	assert.Contains(t, report.String(), `SkipFaults("earthquake"): there is no such kind of fault`)

	sound := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
		}
	}, reconciletest.Create(shop()))
	assert.Contains(t, reconciletest.ExploreQuietly(t, sound, reconciletest.SkipFaults(reconciletest.TimeTravel)).String(), `skipped: ["time travel to before"]`)
}

// In which order conditions were first set says nothing: they are a map by type.
func TestOrderOfConditions(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			types := []string{"One", "Two"}
			if err := c.Get(ctx, client.ObjectKeyFromObject(config("absent")), config("")); !isAbsent(err) {
				return ctrl.Result{}, err
			}
			if s.Annotations["reconciletest.opblocks.dev/another-writer"] != "" {
				types = []string{"Two", "One"}
			}
			if len(s.Status.Conditions) > 1 {
				return ctrl.Result{}, nil
			}
			for _, of := range types {
				s.Status.Conditions = append(s.Status.Conditions, metav1.Condition{Type: of, Status: metav1.ConditionTrue, Reason: "X", LastTransitionTime: metav1.Now()})
			}
			return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
		}
	}, reconciletest.Create(shop()))
	assert.Empty(t, reconciletest.ExploreQuietly(t, s, reconciletest.Replay("conflict at: update Shop/status default/web #1")).Failures)
}

func isAbsent(err error) bool { return client.IgnoreNotFound(err) == nil && err != nil }
