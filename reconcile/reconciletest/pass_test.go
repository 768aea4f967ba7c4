package reconciletest_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// While a pass waits for an object in the cache, events are delivered.
func TestPassWaits(t *testing.T) {
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

func TestPassDoesNotEnd(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, _ client.Client, _ *Shop) (ctrl.Result, error) {
			<-ctx.Done()
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop()))
	assert.Contains(t, reconciletest.ExploreQuietly(t, s).String(), "has not ended after 1h0m0s")
}

// A pass that sends requests for ever is ended, even if it ignores errors.
func TestPassSendsForEver(t *testing.T) {
	tests := map[string]struct {
		do   func(ctx context.Context, p *reconciletest.Process, s *Shop)
		says string
	}{
		"CachedReads": {func(ctx context.Context, p *reconciletest.Process, s *Shop) {
			_ = p.Client().Get(ctx, client.ObjectKeyFromObject(s), s)
		}, "get Shop default/web"},
		"Requests": {func(ctx context.Context, p *reconciletest.Process, s *Shop) {
			_ = p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s)
		}, "get Shop default/web"},
		"Effects": {func(ctx context.Context, p *reconciletest.Process, s *Shop) {
			_ = p.Effect(context.WithoutCancel(ctx), "ring "+s.Name, func() error { return nil })
		}, "effect ring web"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
					for {
						tc.do(ctx, p, s)
					}
				}
			}, reconciletest.Create(shop()))
			report := reconciletest.ExploreQuietly(t, s)
			require.Len(t, report.Failures, 1)
			assert.EqualError(t, report.Failures[0].Err, "pass 1 over Shop default/web does not end: it has sent 10000 requests, the last one "+tc.says)
		})
	}
}

// A panic is a failure that says what panicked and where, wherever it happens.
func TestPanic(t *testing.T) {
	pass := func(do func(p *reconciletest.Process, ctx context.Context, c client.Client, s *Shop)) func(s *reconciletest.Scenario) {
		return func(s *reconciletest.Scenario) {
			s.Start = func(p *reconciletest.Process) error {
				p.Reconcile(&Shop{}, &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					do(p, ctx, c, s)
					return ctrl.Result{}, nil
				}})
				return nil
			}
		}
	}
	var none *Shop
	tests := map[string]struct {
		edit func(s *reconciletest.Scenario)
		says string
	}{
		"Pass": {
			pass(func(*reconciletest.Process, context.Context, client.Client, *Shop) { panic("oh") }),
			`panic in pass 1 over Shop default/web at pass_test\.go:\d+: oh`,
		},
		"NilPointerInPass": {
			pass(func(*reconciletest.Process, context.Context, client.Client, *Shop) { none.Name = "none" }),
			`panic in pass 1 over Shop default/web at pass_test\.go:\d+: runtime error: invalid memory address`,
		},
		"InAnotherPackage": {
			pass(func(_ *reconciletest.Process, _ context.Context, _ client.Client, s *Shop) {
				controllerutil.AddFinalizer(none, "example.com/none")
			}),
			`panic in pass 1 over Shop default/web at (pass|shop)_test\.go:\d+: `,
		},
		"InAnotherModule": {
			pass(func(*reconciletest.Process, context.Context, client.Client, *Shop) {
				(*prometheus.GaugeVec)(nil).With(nil)
			}),
			`panic in pass 1 over Shop default/web at pass_test\.go:\d+: runtime error: invalid memory address`,
		},
		"Effect": {
			pass(func(p *reconciletest.Process, ctx context.Context, _ client.Client, _ *Shop) {
				_ = p.Effect(ctx, "burn", func() error { panic("hot") })
			}),
			`panic in pass 1 over Shop default/web at pass_test\.go:\d+: hot`,
		},
		"Action": {
			func(s *reconciletest.Scenario) {
				s.Actions = []reconciletest.Action{reconciletest.Do("jump", func(context.Context, client.Client) error { panic("oh") })}
			}, `the action "jump": panic in it at pass_test\.go:\d+: oh`,
		},
		"Start": {
			func(s *reconciletest.Scenario) { s.Start = func(*reconciletest.Process) error { panic("oh") } },
			`start: panic in Start at pass_test\.go:\d+: oh`,
		},
		"Finally": {
			func(s *reconciletest.Scenario) { s.Finally = func(*reconciletest.Env) error { panic("oh") } },
			`panic in Finally at pass_test\.go:\d+: oh`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := twoFaults()
			tc.edit(&s)
			report := reconciletest.ExploreQuietly(t, s)
			require.Len(t, report.Failures, 1)
			assert.Regexp(t, tc.says, report.String())
		})
	}
}

var errMotto = errors.New("the motto is not available")

// If all passes fail and the operator is quiet between them, it has not done its work, even if the user then deletes the object. That is a
// finding unless the scenario says in Unready that it is intended.
func TestPassesEndInErrors(t *testing.T) {
	invalid := func(s *Shop) *corev1.ConfigMap {
		made := config(s.Name)
		made.Name = "Not a name"
		return made
	}
	tests := map[string]struct {
		pass func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error)
		says string // the reason for Unready too; "": the run must not fail
	}{
		"Error": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, errMotto },
			"the motto is not available",
		},
		"TerminalError": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				return ctrl.Result{}, ctrlreconcile.TerminalError(errMotto)
			},
			"terminal error: the motto is not available",
		},
		"RequeueForEver": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				return ctrl.Result{Requeue: true}, nil //nolint:staticcheck // reconcilers still use it
			},
			"by asking for another one (Requeue)",
		},
		"RefusedThenDelay": {
			func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				if c.Create(ctx, invalid(s)) != nil {
					return ctrl.Result{RequeueAfter: time.Minute}, nil
				}
				return ctrl.Result{}, nil
			},
			"with a delay of 1m0s, since create ConfigMap default/Not a name is refused: ",
		},
		"Delay": {
			func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
				return ctrl.Result{RequeueAfter: time.Minute}, nil
			}, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := of(func(*reconciletest.Process) shopFunc { return tc.pass }, reconciletest.Create(shop()))
			if tc.says == "" {
				reconciletest.Explore(t, s)
				return
			}
			for _, then := range [][]reconciletest.Action{nil, {reconciletest.Delete(shop())}} {
				s.Actions, s.Unready = append(s.Actions, then...), nil
				report := reconciletest.ExploreQuietly(t, s)
				require.Len(t, report.Failures, 1)
				assert.Empty(t, report.Failures[0].Faults)
				assert.Equal(t, reconciletest.Findings.DoesNotSucceed, report.Failures[0].Kind)
				assert.Regexp(t, `passes over Shop default/web after "create Shop default/web" end .*`+regexp.QuoteMeta(tc.says), report.Failures[0].Err)
				s.Unready = []reconciletest.Unready{{Object: shop(), Reason: tc.says}}
				reconciletest.Explore(t, s)
			}
		})
	}
}
