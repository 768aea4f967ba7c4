package reconciletest_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// programStart is a time of the real clock, as an operator keeps it in a package variable.
var programStart = time.Now()

// passing returns the scenario of an operator whose passes call do.
func passing(do func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error)) reconciletest.Scenario {
	return of(func(*reconciletest.Process) shopFunc { return do }, reconciletest.Create(shop()))
}

// starting returns a scenario whose Start is the given function.
func starting(start func(p *reconciletest.Process) error) reconciletest.Scenario {
	s := passing(nil)
	s.Start = start
	return s
}

// checking returns the scenario of an operator that does nothing, after edit has changed it.
func checking(edit func(s *reconciletest.Scenario)) reconciletest.Scenario {
	s := passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil })
	edit(&s)
	return s
}

// If a scenario cannot be explored, the report has a sentence that says what to do, and the test program goes on.
func TestBadInput(t *testing.T) {
	tests := map[string]struct {
		reason   string
		scenario func() reconciletest.Scenario
		says     []string // regular expressions
	}{
		"Heartbeat": {
			reason: "The status is written every 30 seconds.",
			scenario: func() reconciletest.Scenario {
				return passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					s.Status.LastSeen = new(metav1.Now())
					return ctrl.Result{RequeueAfter: 30 * time.Second}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				})
			},
			says: []string{
				"it does not become quiet in 300 passes: update Shop/status default/web, 150 times:\n  status.lastSeen: from ",
				`If that is a heartbeat, name it in the scenario: Heartbeats: map\[string\]\[\]string\{"Shop": \{"status.lastSeen"\}\}`,
			},
		},
		"RunsAgainAtOnce": {
			reason: "Each write triggers the next pass.",
			scenario: func() reconciletest.Scenario {
				return passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					s.Status.Slot++
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				})
			},
			says: []string{"update Shop/status default/web, 300 times:\n  status.slot: from ", "a pass runs again at once after its own write. Write only what has changed, and let a predicate leave out"},
		},
		"NothingChanges": {
			reason: "It asks for another pass at once, though nothing is left to do.",
			scenario: func() reconciletest.Scenario {
				s := passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
					return ctrl.Result{RequeueAfter: time.Second}, nil
				})
				s.Horizon = time.Hour
				return s
			},
			says: []string{"in 300 passes, and none of them changes anything: each asks for another one. Return a delay only while something is left to wait for"},
		},
		"FailsAgainAndAgain": {
			reason: "The longest delay between two attempts is a second, and the first pass writes something.",
			scenario: func() reconciletest.Scenario {
				limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Millisecond, time.Second)
				return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
					b.For(&Shop{}).WithOptions(controller.Options{RateLimiter: limiter})
					return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
						return ctrl.Result{}, errors.Join(ensureFinalizer(ctx, c, s), errors.New("the bank is closed"))
					}}
				}, reconciletest.Create(shop()))
			},
			says: []string{`in 300 passes, and no more than 1 of their requests change anything: each pass over shop default/web ends with an error, such as the last one: the bank is closed`},
		},
		"WebhookNotRegistered": {
			reason: "The manifests name a webhook that main does not set up.",
			scenario: func() reconciletest.Scenario {
				s := storeOperator{pass: furnish}.scenario(reconciletest.Create(store()), reconciletest.Change(store(), func(s *Store) { s.Spec.Shelves = 2 }))
				s.Webhooks = []string{"testdata/webhooks/manifests.yaml"}
				return s
			},
			says: []string{`the operator has registered no such webhook at /mutate-example-com-v1-store: register it in Start, as main does, by ctrl.NewWebhookManagedBy`},
		},
		"NoWebhook": {
			reason: "The folder has definitions only.",
			scenario: func() reconciletest.Scenario {
				return checking(func(s *reconciletest.Scenario) { s.Webhooks = []string{"testdata"} })
			},
			says: []string{`no webhook in testdata: name the file that controller-gen writes, such as config/webhook/manifests.yaml`},
		},
		"MatchConditions": {
			reason: "The server cannot evaluate them.",
			scenario: func() reconciletest.Scenario {
				return checking(func(s *reconciletest.Scenario) { s.Webhooks = []string{"testdata/webhooks/conditions/manifests.yaml"} })
			},
			says: []string{`webhook vstore.example.com: the server in memory does not know matchConditions: give the test a copy of the configuration without them`},
		},
		"ObjectInAnotherVersion": {
			reason: "The webhook that converts it does not run yet.",
			scenario: func() reconciletest.Scenario {
				s := storeOperator{pass: furnish}.scenario(reconciletest.Delete(store()))
				s.Objects = []client.Object{oldStore(2)}
				return s
			},
			says: []string{`the scenario's objects: OldStore default/web has version v1alpha1, which the operator's webhook converts, and no process of it has started yet: give it in version v1, or create it by an action`},
		},
		"TwoHubs": {
			reason: "Nobody knows between which types to convert.",
			scenario: func() reconciletest.Scenario {
				return storeOperator{scheme: storeScheme(&otherHub{}, &OldStoreList{}), pass: furnish}.scenario(reconciletest.Create(store()))
			},
			says: []string{`the versions of Store.example.com do not all convert: multiple\(2\) hubs defined.*: one of them must be the hub, and all others need ConvertTo and ConvertFrom`},
		},
		"PanicsAtTheStart": {
			reason:   "A nil map in main.",
			scenario: func() reconciletest.Scenario { return starting(func(*reconciletest.Process) error { panic("oh") }) },
			says:     []string{`start: panic in Start at badinput_test\.go:\d+: oh`},
		},
		"MetricsInTheGlobalRegistry": {
			reason: "The registry of the test program knows the metrics of the process before.",
			scenario: func() reconciletest.Scenario {
				registry := prometheus.NewRegistry() // each exploration of this test has its own
				s := passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) { return ctrl.Result{}, nil })
				register := s.Start
				s.Start = func(p *reconciletest.Process) error {
					registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "shops", Help: "shops"}))
					return register(p)
				}
				return s
			},
			says: []string{
				`^The scenario could not be run\.\n\ncalling Start fails in the second process of this test program, and not in the first one: ` +
					`panic in Start at badinput_test\.go:\d+: duplicate metrics collector registration attempted\n`,
				"such as to register metrics in the global registry, belongs before Explore, or in a sync.Once\n",
			},
		},
		"MetricsOfAnEarlierExploration": {
			reason: "So does the first process of a second exploration.",
			scenario: func() reconciletest.Scenario {
				registry := prometheus.NewRegistry()
				registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "shops", Help: "shops"}))
				return starting(func(*reconciletest.Process) error {
					return registry.Register(prometheus.NewGauge(prometheus.GaugeOpts{Name: "shops", Help: "shops"}))
				})
			},
			says: []string{"start: duplicate metrics collector registration attempted\nIn a cluster each process begins a program"},
		},
		"KindWithoutDefinition": {
			reason: "One of two controllers watches a kind whose CRD the scenario lacks.",
			scenario: func() reconciletest.Scenario {
				nothing := ctrlreconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) { return ctrl.Result{}, nil })
				return starting(func(p *reconciletest.Process) error {
					gadget := &unstructured.Unstructured{}
					gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
					if err := ctrl.NewControllerManagedBy(p.Manager()).For(&corev1.ConfigMap{}).Complete(nothing); err != nil {
						return err
					}
					return ctrl.NewControllerManagedBy(p.Manager()).For(&Shop{}).Owns(gadget).Complete(nothing)
				})
			},
			says: []string{`the manager ended: failed to wait for shop caches to sync .*\n.*no matches for kind "Gadget".*: if the scenario lacks its custom resource definition, add`},
		},
		"RunnablePanics": {
			reason: "A runnable has a goroutine of its own.",
			scenario: func() reconciletest.Scenario {
				return starting(func(p *reconciletest.Process) error {
					return p.Manager().Add(manager.RunnableFunc(func(context.Context) error { panic("oh") }))
				})
			},
			says: []string{`the manager ended: panic in a runnable of the manager at badinput_test\.go:\d+: oh`},
		},
		"StartBlocks": {
			reason: "It waits for its own end.",
			scenario: func() reconciletest.Scenario {
				return starting(func(p *reconciletest.Process) error { <-p.Context().Done(); return nil })
			},
			says: []string{"start: Start has not returned after 10m0s of virtual time: Start sets up the process and returns, as main does before it starts the manager"},
		},
		"StartPolls": {
			reason: "It waits for an object that nobody creates.",
			scenario: func() reconciletest.Scenario {
				return starting(func(p *reconciletest.Process) error {
					for p.APIReader().Get(p.Context(), client.ObjectKeyFromObject(config("settings")), config("")) != nil {
						time.Sleep(time.Second)
					}
					return nil
				})
			},
			says: []string{"start: Start has not returned after 10m0s of virtual time"},
		},
		"ActionPolls": {
			reason: "As in a test on a real cluster, it waits until the operator has done something.",
			scenario: func() reconciletest.Scenario {
				return checking(func(s *reconciletest.Scenario) {
					s.Actions = append(s.Actions, reconciletest.Do("wait until ready", func(ctx context.Context, c client.Client) error {
						for c.Get(ctx, client.ObjectKeyFromObject(config("web")), config("")) != nil {
							time.Sleep(time.Second)
						}
						return nil
					}))
				})
			},
			says: []string{`the action "wait until ready": it has not returned after 10m0s of virtual time: the operator does nothing while an action runs; use Wait`},
		},
		"ActionFailsTheTest": {
			reason: "Functions of package require end the goroutine.",
			scenario: func() reconciletest.Scenario {
				return checking(func(s *reconciletest.Scenario) {
					s.Actions = append(s.Actions, reconciletest.Do("end", func(context.Context, client.Client) error { runtime.Goexit(); return nil }))
				})
			},
			says: []string{`the action "end": it has ended its goroutine, such as by t.FailNow or by package require: return an error instead`},
		},
		"FinallyBlocks": {
			reason: "A check is not the place to wait.",
			scenario: func() reconciletest.Scenario {
				return checking(func(s *reconciletest.Scenario) { s.Finally = waitForEver })
			},
			says: []string{"what must hold at the end does not: Finally has not returned after 10m0s of virtual time: a check is called when the operator is quiet"},
		},
		"AlwaysBlocks": {
			reason: "The same.",
			scenario: func() reconciletest.Scenario {
				s := passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "Open"))
				})
				s.Always = waitForEver
				return s
			},
			says: []string{"what must always hold does not: Always has not returned after 10m0s of virtual time"},
		},
		"ThenBlocks": {
			reason: "The same.",
			scenario: func() reconciletest.Scenario {
				return checking(func(s *reconciletest.Scenario) { s.Actions[0] = s.Actions[0].Then(waitForEver) })
			},
			says: []string{"Then has not returned after 10m0s of virtual time"},
		},
		"ControllerBlocks": {
			reason: "Nothing moves while a simulated controller waits.",
			scenario: func() reconciletest.Scenario {
				return checking(func(s *reconciletest.Scenario) {
					s.SimulatedControllers = []reconciletest.SimulatedController{{Step: func(ctx context.Context, _ client.Client) error { return waitForEver(nil) }}}
				})
			},
			says: []string{"the run does not go on, since everything in it waits: "},
		},
		"GoroutineEachPass": {
			reason: "Each pass starts a goroutine that never ends.",
			scenario: func() reconciletest.Scenario {
				return passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
					go func() { _ = waitForEver(nil) }()
					return ctrl.Result{}, nil
				})
			},
			says: []string{`a goroutine is left when the process has ended: .*TestBadInput.* started it at badinput_test\.go:\d+, and it waits: chan receive`},
		},
		"RealTime": {
			reason: "The time is from a package variable, whose clock is the real one.",
			scenario: func() reconciletest.Scenario {
				return passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.LastSeen != nil {
						return ctrl.Result{}, nil
					}
					s.Status.LastSeen = new(metav1.NewTime(programStart))
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				})
			},
			says: []string{"^Without any fault, the operator works with a time of the real clock: update Shop/status default/web writes one to status.lastSeen\n" +
				"The clock of a run is virtual, and begins in the year 2000. Call time.Now in the pass, or in Start, not in a package variable or in the test\n\nsurvived "},
		},
		"RealDelay": {
			reason: "A minute after the start of the program is 26 years away.",
			scenario: func() reconciletest.Scenario {
				return passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
					return ctrl.Result{RequeueAfter: time.Until(programStart.Add(time.Minute))}, nil
				})
			},
			says: []string{`^Without any fault, the operator works with a time of the real clock: pass 1 over Shop default/web asks for another one after \d+h`},
		},
		"PackageVariable": {
			reason: "A map in a package variable knows what was done in an earlier run.",
			scenario: func() reconciletest.Scenario {
				done := map[string]bool{} // each exploration of this test has its own
				return passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if done[s.Name] {
						return ctrl.Result{}, nil
					}
					done[s.Name] = true
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, nil))
				})
			},
			says: []string{
				"^It fails without any fault.\n\nthe first run without faults ends otherwise than the 13 later ones, which end alike: ConfigMap default/web\n",
				"The operator keeps something in the test program from one run to the next, such as a map in a package variable. A process in a cluster begins without it: make it in Start",
			},
		},
		"CounterInAPackageVariable": {
			reason: "Each run has another value, as with chance.",
			scenario: func() reconciletest.Scenario {
				var passes atomic.Int64
				return passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Slot > 0 {
						return ctrl.Result{}, nil
					}
					s.Status.Slot = int(passes.Add(1))
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				})
			},
			says: []string{`not compared, since two runs without faults differ there \(a random value, the order of a Go map, or a package variable\): Shop default/web: status.slot`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			report := reconciletest.ExploreQuietly(t, tc.scenario())
			assert.Less(t, time.Since(begun), time.Minute)
			for _, says := range tc.says {
				assert.Regexp(t, says, report.String(), tc.reason)
			}
		})
	}
}

// waitForEver waits for something that never happens.
func waitForEver(*reconciletest.Env) error {
	<-make(chan struct{})
	return nil
}

// If an operator keeps the virtual clock from moving, the run cannot be ended from within. A goroutine outside of the run reports it.
func TestRunHangs(t *testing.T) {
	tests := map[string]struct {
		reason string
		hang   func(stop <-chan struct{}) // returns when stop is closed
		says   string
	}{
		"BusyLoop": {
			reason: "A loop without a request.",
			hang: func(stop <-chan struct{}) {
				for {
					select {
					case <-stop:
						return
					default: //nolint:staticcheck // it spins on purpose
					}
				}
			},
			says: "This is why: it computes, or starts goroutines, without end: let it end when its context is cancelled",
		},
		"GoroutineAfterGoroutine": {
			reason: "Each goroutine starts the next one, and ends.",
			hang: func(stop <-chan struct{}) {
				var next func()
				next = func() {
					select {
					case <-stop:
					default:
						go next()
					}
				}
				next()
			},
			says: "This is why: it computes, or starts goroutines, without end",
		},
		"Mutex": {
			reason: "An earlier pass has left it locked.",
			hang: func(stop <-chan struct{}) {
				var mu sync.Mutex
				mu.Lock()
				go func() {
					<-stop
					mu.Unlock()
				}()
				mu.Lock()
			},
			says: "This is why: it waits for a lock that is not released, such as a mutex that a pass has left locked: unlock it by defer",
		},
		"Channel": {
			reason: "A channel or a timer in a package variable belongs to the real world.",
			hang:   func(stop <-chan struct{}) { <-stop },
			says:   "This is why: it waits for a channel or a timer that was made outside of the run, such as in a package variable, whose clock is the real one: make it in Start",
		},
	}
	// The first run of a program takes longest, since it parses the schemas of Kubernetes. After it, a second is much longer than any step.
	reconciletest.Run(t, checking(func(*reconciletest.Scenario) {}), func(*testing.T, *reconciletest.Env) {})
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stop, before := make(chan struct{}), bubbleGoroutines()
			t.Run("Explore", func(t *testing.T) {
				report := reconciletest.ExploreHung(t, passing(func(context.Context, client.Client, *Shop) (ctrl.Result, error) {
					tc.hang(stop)
					return ctrl.Result{}, nil
				}), time.Second)
				require.Len(t, report.Failures, 1)
				assert.Contains(t, report.String(), "It fails without any fault.\n\nthe run hangs: the virtual clock has stood still for ", tc.reason)
				assert.Contains(t, report.String(), tc.says, tc.reason)
				assert.Contains(t, report.String(), "badinput_test.go:", "the stack is shown")
				assert.Contains(t, report.String(), "user: create Shop default/web\n", "the trace is shown")
			})
			close(stop)
			waitForBubbles(before)
		})
	}
}

// bubbleGoroutines returns how many goroutines are in bubbles.
func bubbleGoroutines() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "synctest bubble")
}

// waitForBubbles waits until the runs that were left behind have ended: until there are no more goroutines in bubbles than before.
func waitForBubbles(before int) {
	for bubbleGoroutines() > before {
		runtime.Gosched()
	}
}

// A run that hangs after a fault is a finding. No further run begins, since the one that hangs takes up a processor.
func TestRunHangsAfterAFault(t *testing.T) {
	stop, before := make(chan struct{}), bubbleGoroutines()
	t.Run("Explore", func(t *testing.T) {
		report := reconciletest.ExploreHung(t, of(func(*reconciletest.Process) shopFunc {
			var mu sync.Mutex
			return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
				if !mu.TryLock() {
					<-stop // as Lock would
				}
				if err := open(ctx, c, s, "Open"); err != nil {
					return ctrl.Result{}, client.IgnoreNotFound(err) // without Unlock
				}
				mu.Unlock()
				return ctrl.Result{}, nil
			}
		}, reconciletest.Create(shop())), 3*time.Second)
		require.NotEmpty(t, report.Failures)
		assert.Len(t, report.Failures[0].Faults, 1)
		assert.Contains(t, report.String(), "the run hangs: ")
		assert.Contains(t, report.String(), "replay it: ")
		require.Error(t, report.Unfinished)
		assert.Contains(t, report.String(), "left out, since a run hangs, and nothing but the end of the program can end it")
	})
	close(stop)
	waitForBubbles(before)
}

// An object of 1.5 MiB, which is about the most that a real API server stores, neither fills the report nor hides what is wrong.
func TestLargeObject(t *testing.T) {
	s := passing(func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
		if s.Status.Message == "" {
			s.Status.Message = s.Spec.Motto
			_ = c.Status().Update(ctx, s) // its error is ignored
		}
		return ctrl.Result{}, nil
	})
	s.Actions = []reconciletest.Action{reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = strings.Repeat("x", 3<<18) }))}
	report := reconciletest.ExploreQuietly(t, s)
	assert.Regexp(t, `Shop default/web: status.message: "x+…(\(.*\))?"? without faults, nothing here`, report.String())
	assert.Less(t, len(report.String()), 16<<10, "bytes of the report")
}
