package reconciletest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// painted returns actions that create a shop with the first motto, and change it to the others.
func painted(mottos ...string) []reconciletest.Action {
	actions := []reconciletest.Action{reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = mottos[0] }))}
	for _, motto := range mottos[1:] {
		actions = append(actions, reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = motto }))
	}
	return actions
}

// keepFirst creates a child if it does not exist, and never updates it.
func keepFirst(ctx context.Context, c client.Client, want *corev1.ConfigMap) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(want), config(want.Name))
	if !apierrors.IsNotFound(err) {
		return err
	}
	return c.Create(ctx, want)
}

// faultyTiming are operators that are wrong even in the run without faults. The first two end in the right state if they start late, so the
// report says that they depend on timing. The third sends a write in each pass, also when nothing has changed.
var faultyTiming = map[string]faulty{
	"CleanupByAChangedName": {
		reason: "the child is named after the spec, and the one of the old name is never deleted",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := ensureFinalizer(ctx, c, s); err != nil {
						return ctrl.Result{}, err
					}
					if err := ensure(ctx, c, s, owned(c, s, "till-"+s.Spec.Motto, nil)); err != nil || !sound {
						return ctrl.Result{}, err
					}
					var all corev1.ConfigMapList
					now := shop()
					if err := errors.Join(p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), now), p.APIReader().List(ctx, &all)); err != nil {
						return ctrl.Result{}, err
					}
					if now.Spec.Motto != s.Spec.Motto { // its event will trigger another pass
						return ctrl.Result{}, nil
					}
					for i := range all.Items {
						if m := &all.Items[i]; metav1.IsControlledBy(m, s) && m.Name != "till-"+s.Spec.Motto {
							version := client.Preconditions{UID: &m.UID}
							if err := c.Delete(ctx, m, version); client.IgnoreNotFound(err) != nil {
								return ctrl.Result{}, err
							}
						}
					}
					return ctrl.Result{}, nil
				}
			}, painted("red", "blue", "green")...)
		},
		fault: reconciletest.Faults.ConcurrentAction,
		kind:  reconciletest.Findings.DependsOnTiming,
		says:  []string{"depends on timing: either may be wrong", "ConfigMap default/till-red: present without faults, absent if the operator starts late, absent here"},
	},
	"FieldNeverUpdated": {
		reason: "both children keep what the spec said when they were created",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					for _, name := range []string{"front", "back"} {
						want := owned(c, s, name, map[string]string{"motto": s.Spec.Motto})
						keep := keepFirst
						if sound {
							keep = func(ctx context.Context, c client.Client, want *corev1.ConfigMap) error {
								return ensure(ctx, c, s, want)
							}
						}
						if err := keep(ctx, c, want); err != nil {
							return ctrl.Result{}, err
						}
					}
					return ctrl.Result{}, nil
				}
			}, painted("red", "blue")...)
		},
		fault: reconciletest.Faults.CrashDowntime,
		kind:  reconciletest.Findings.DependsOnTiming,
		says:  []string{`data.motto: "red" without faults, "blue" if the operator starts late, "blue" here`},
	},
	"NoOpWriteInEveryPass": {
		reason: "each pass costs a request, also when nothing has changed",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound {
						return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
					}
					s.Status.Phase = "Open"
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				}
			}, reconciletest.Create(shop()))
		},
		kind: reconciletest.Findings.BreaksConvention,
		says: []string{"a pass that has nothing to do sends update Shop/status default/web, which changes nothing"},
	},
}

// An operator that is right only if it starts late is not reported. A run with a fault may equal either run without faults, the normal one
// or the one with the late start. Here they differ in one field only, so each run equals one of them.
func TestRightAfterALateStart(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			if err := ensureFinalizer(ctx, c, s); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, keepFirst(ctx, c, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto}))
		}
	}, painted("red", "blue")...)
	reconciletest.Explore(t, s)
}

// If an operator also has a mistake that does not depend on timing, that mistake is reported as such.
func TestWrongBesideTiming(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(s), config(""))
			if !apierrors.IsNotFound(err) {
				return ctrl.Result{}, err
			}
			if err := c.Create(ctx, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, c.Create(ctx, owned(c, s, "second", nil))
		}
	}, painted("red", "blue")...)
	report := reconciletest.ExploreQuietly(t, s)
	if assert.NotEmpty(t, report.Failures) {
		assert.Equal(t, reconciletest.Findings.DoesNotSurvive, report.Failures[0].Kind)
		assert.Contains(t, report.String(), "ConfigMap default/second: present without faults, absent here")
	}
}
