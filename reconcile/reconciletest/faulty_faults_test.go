package reconciletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// faultyAnswers are operators that conclude too much from an answer or an event.
var faultyAnswers = map[string]faulty{
	"TimeoutOfCleanupTakenForSuccess": {
		reason: "a timeout does not say whether the account is dropped, and the finalizer is removed",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp == nil {
						return ctrl.Result{}, firstOf(ensureFinalizer(ctx, c, s), accountsOf(p).keep(ctx, s.Name))
					}
					if !controllerutil.ContainsFinalizer(s, finalizer) {
						return ctrl.Result{}, nil
					}
					err := accountsOf(p).drop(ctx, s.Name)
					if errors.Is(err, errNoAccount) || !sound && errors.Is(err, context.DeadlineExceeded) {
						err = nil
					}
					if err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, removeFinalizer(ctx, c, s)
				}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.TimeoutBefore,
		says:  []string{"timeout before: effect drop account web #1", `external: null without faults, ["web"] here`},
	},
	"MemoryByNameAcrossARecreation": {
		reason: "the watch has missed that the shop was deleted, so what is remembered of its name is taken for the next shop",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{})
				done := map[string]bool{} // forgotten when the shop is not found
				return ctrlreconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					s := &Shop{}
					if err := p.Client().Get(ctx, req.NamespacedName, s); err != nil {
						clear(done)
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					key := s.Name
					if sound {
						key = string(s.UID)
					}
					if done[key] {
						return ctrl.Result{}, nil
					}
					if err := ensure(ctx, p.Client(), s, owned(p.Client(), s, s.Name, nil)); err != nil {
						return ctrl.Result{}, err
					}
					done[key] = true
					return ctrl.Result{}, nil
				})
			}, reconciletest.Create(shop()), reconciletest.Delete(shop()), reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.MissedDeletion,
		says:  []string{"missed deletion of: deleted Shop default/web #1", "ConfigMap default/web: present without faults, absent here"},
	},
	"NothingRemovedOutside": {
		reason: "there is no finalizer, so the account stays for ever, in each run in which there was one",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if !sound {
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					if s.DeletionTimestamp == nil {
						return ctrl.Result{}, firstOf(ensureFinalizer(ctx, c, s), accountsOf(p).keep(ctx, s.Name))
					}
					if err := accountsOf(p).drop(ctx, s.Name); err != nil && !errors.Is(err, errNoAccount) {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, removeFinalizer(ctx, c, s)
				}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
		says: []string{"It leaves something outside of the cluster, without any fault.", "this is left outside after the deletion", `external: null at the beginning, ["web"] in the end`},
	},
}

// meter is a service that refuses more than three requests a second.
type meter struct{ times []time.Time }

func (m *meter) State() any { return nil }

// take notes a request. It returns an error if there were three in the last second.
func (m *meter) take() error {
	if n := len(m.times); n >= 3 && time.Since(m.times[n-3]) < time.Second {
		return errors.New("4 requests in a second")
	}
	m.times = append(m.times, time.Now())
	return nil
}

// Requests take the time that Latency says, so that rates and the timeouts of contexts can be tested.
func TestLatency(t *testing.T) {
	for name, test := range map[string]struct {
		reason  string
		latency time.Duration
		timeout time.Duration
		fails   string
	}{
		"None":       {"All requests happen at one moment.", 0, time.Hour, "4 requests in a second"},
		"Slow":       {"Each takes so long that the rate is kept.", 400 * time.Millisecond, time.Hour, ""},
		"TooSlow":    {"The context ends before the answer.", 400 * time.Millisecond, 100 * time.Millisecond, "context deadline exceeded"},
		"FastEnough": {"The context ends after the answer.", 400 * time.Millisecond, 500 * time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
					for i := range 6 {
						within, cancel := context.WithTimeout(ctx, test.timeout)
						err := p.Effect(within, fmt.Sprintf("measure %d of %s", i, s.Name), p.External().(*meter).take)
						if cancel(); err != nil {
							return ctrl.Result{}, err
						}
					}
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop()))
			s.External, s.Latency = func() reconciletest.External { return &meter{} }, test.latency
			report := reconciletest.ExploreQuietly(t, with(s, reconciletest.Options{WithoutFaults: true}))
			if test.fails == "" {
				assert.Empty(t, report.Failures, test.reason)
			} else {
				assert.Contains(t, report.String(), test.fails, test.reason)
			}
		})
	}
}
