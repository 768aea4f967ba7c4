package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// A panic is a failure that says what panicked and where, wherever it happens.
func TestPanics(t *testing.T) {
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
		"pass": {
			pass(func(*reconciletest.Process, context.Context, client.Client, *Shop) { panic("oh") }),
			`panic in pass 1 over Shop default/web at panic_test\.go:\d+: oh`,
		},
		"nil pointer in a pass": {
			pass(func(*reconciletest.Process, context.Context, client.Client, *Shop) { none.Name = "none" }),
			`panic in pass 1 over Shop default/web at panic_test\.go:\d+: runtime error: invalid memory address`,
		},
		"within another package": {
			pass(func(_ *reconciletest.Process, _ context.Context, _ client.Client, s *Shop) {
				controllerutil.AddFinalizer(none, "example.com/none")
			}),
			`panic in pass 1 over Shop default/web at (panic|shop)_test\.go:\d+: `,
		},
		"effect": {
			pass(func(p *reconciletest.Process, ctx context.Context, _ client.Client, _ *Shop) {
				_ = p.Effect(ctx, "burn", func() error { panic("hot") })
			}),
			`panic in pass 1 over Shop default/web at panic_test\.go:\d+: hot`,
		},
		"action": {
			func(s *reconciletest.Scenario) {
				s.Actions = []reconciletest.Action{reconciletest.Do("jump", func(context.Context, client.Client) error { panic("oh") })}
			}, `the action "jump": panic in it at panic_test\.go:\d+: oh`,
		},
		"start": {
			func(s *reconciletest.Scenario) { s.Start = func(*reconciletest.Process) error { panic("oh") } },
			`start: panic in Start at panic_test\.go:\d+: oh`,
		},
		"finally": {
			func(s *reconciletest.Scenario) { s.Finally = func(*reconciletest.Env) error { panic("oh") } },
			`panic in Finally at panic_test\.go:\d+: oh`,
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

// A pass that sends requests for ever ends, whatever it makes of errors.
func TestPassThatSendsForEver(t *testing.T) {
	tests := map[string]struct {
		do   func(ctx context.Context, p *reconciletest.Process, s *Shop)
		says string
	}{
		"reads of the cache": {func(ctx context.Context, p *reconciletest.Process, s *Shop) {
			_ = p.Client().Get(ctx, client.ObjectKeyFromObject(s), s)
		}, "get Shop default/web"},
		"requests": {func(ctx context.Context, p *reconciletest.Process, s *Shop) {
			_ = p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s)
		}, "get Shop default/web"},
		"effects": {func(ctx context.Context, p *reconciletest.Process, s *Shop) {
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

// A process that has died may try for ever to be heard: nothing hangs.
func TestDeadProcessThatTriesForEver(t *testing.T) {
	s := of(func(*reconciletest.Process) shopFunc {
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			for client.IgnoreAlreadyExists(c.Create(ctx, owned(c, s, s.Name, nil))) != nil {
				continue
			}
			return ctrl.Result{}, nil
		}
	}, reconciletest.Create(shop()))
	reconciletest.Explore(t, s)
}
