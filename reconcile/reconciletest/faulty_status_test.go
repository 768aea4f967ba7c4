package reconciletest_test

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// byGeneration returns a scenario whose operator has a pass only when the spec changes.
func byGeneration(pass func(p *reconciletest.Process) shopFunc, actions ...reconciletest.Action) reconciletest.Scenario {
	return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		b.For(&Shop{}, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
		return &shopReconciler{p.Client(), pass(p)}
	}, actions...)
}

var faultyStatus = map[string]faulty{
	"StatusLostOnConflict": {
		reason: "a conflict counts as success, and no event triggers another pass",
		scenario: func(sound bool) reconciletest.Scenario {
			return byGeneration(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					err := open(ctx, c, s, "Open")
					if !sound && apierrors.IsConflict(err) {
						err = nil
					}
					return ctrl.Result{}, client.IgnoreNotFound(err)
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.Conflict,
		says:  []string{"conflict at: update Shop/status default/web #1", `status.phase: "Open" without faults, nothing here`, "another writer wrote the object just before"},
	},
	"ConditionsOfOthersOverwritten": {
		reason: "a merge patch sends the whole list as it was read before",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					before := s.DeepCopyObject().(*Shop)
					is := metav1.Condition{Type: "Open", Status: metav1.ConditionTrue, Reason: "Opened", Message: s.Spec.Motto}
					if !meta.SetStatusCondition(&s.Status.Conditions, is) {
						return ctrl.Result{}, nil
					}
					patch := client.MergeFrom(before)
					if sound {
						patch = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
					}
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Patch(ctx, s, patch))
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		fault: reconciletest.Faults.Conflict,
		says:  []string{"conflict at: patch Shop/status default/web", "lost what another writer wrote just before: the condition"},
	},
	"RetryWithoutReadingAgain": {
		reason: "the same outdated version is sent five times",
		scenario: func(sound bool) reconciletest.Scenario {
			return byGeneration(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					for range 5 {
						err := open(ctx, c, s, "Open")
						if !apierrors.IsConflict(err) {
							return ctrl.Result{}, client.IgnoreNotFound(err)
						}
						s.Status.Phase = ""
						if sound {
							if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
								return ctrl.Result{}, client.IgnoreNotFound(err)
							}
						}
					}
					return ctrl.Result{}, nil
				}
			}, reconciletest.Create(shop()))
		},
		fault: reconciletest.Faults.Conflict,
		says:  []string{"update Shop/status default/web", `status.phase: "Open" without faults, nothing here`},
	},
	"TimestampInEveryPass": {
		reason: "each pass writes, and the write triggers the next pass",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound && s.Status.LastSeen != nil {
						return ctrl.Result{}, nil
					}
					s.Status.LastSeen = new(metav1.Now())
					return ctrl.Result{}, c.Status().Update(ctx, s)
				}
			}, reconciletest.Create(shop()))
		},
		says: []string{"update Shop/status default/web", "status.lastSeen: from", "It fails without any fault"},
	},
	"HistoryGrows": {
		reason: "each pass appends an entry, and the write triggers the next pass",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if n := len(s.Status.Nodes); sound && n > 0 && s.Status.Nodes[n-1] == "well" {
						return ctrl.Result{}, nil
					}
					s.Status.Nodes = append(s.Status.Nodes, "well")
					return ctrl.Result{}, c.Status().Update(ctx, s)
				}
			}, reconciletest.Create(shop()))
		},
		says: []string{"it does not become quiet in 300 passes: update Shop/status default/web, 300 times", "status.nodes: from"},
	},
	"GenerationOfALaterRead": {
		reason: "a change during the pass is recorded as done, so it is never made",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Slot == int(s.Generation) {
						return ctrl.Result{}, nil
					}
					if err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil {
						return ctrl.Result{}, err
					}
					now := &Shop{}
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), now); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					now.Status.Slot = int(now.Generation)
					if sound {
						now.Status.Slot = int(s.Generation)
					}
					return ctrl.Result{}, c.Status().Update(ctx, now)
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		fault: reconciletest.Faults.ConcurrentAction,
		says:  []string{"concurrent action before: create ConfigMap default/web #1", `ConfigMap default/web: data.motto: "always open" without faults, "" here`},
	},
	"UnsortedList": {
		reason: "a map has another order in each pass",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					nodes := map[string]bool{}
					for _, name := range s.Spec.Counters {
						nodes[name] = true
					}
					list := slices.Collect(maps.Keys(nodes))
					if sound {
						slices.Sort(list)
					}
					if slices.Equal(list, s.Status.Nodes) {
						return ctrl.Result{}, nil
					}
					s.Status.Nodes = list
					return ctrl.Result{}, c.Status().Update(ctx, s)
				}
			}, reconciletest.Create(shop(func(s *Shop) {
				s.Spec.Counters = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"}
			})))
		},
		says: []string{"update Shop/status default/web", "status.nodes[", "status.nodes has the same items in another order: if they come from a Go map"},
	},
	"PasswordInStatus": {
		reason: "whoever may read the object can read the password",
		scenario: func(sound bool) reconciletest.Scenario {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
				Data:       map[string][]byte{"password": []byte("correct horse battery staple")},
			}
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					is := &corev1.Secret{}
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(secret), is); err != nil {
						return ctrl.Result{}, err
					}
					message := "connected as web with " + string(is.Data["password"])
					if sound {
						message = "connected as web"
					}
					if s.Status.Message == message {
						return ctrl.Result{}, nil
					}
					s.Status.Message = message
					return ctrl.Result{}, c.Status().Update(ctx, s)
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{secret}
			return s
		},
		says: []string{`the value of key "password" in Secret web appears in status.message of Shop default/web`},
	},
	"StateInMemory": {
		reason: "after a restart the counter begins again, and two shops get the same slot",
		scenario: func(sound bool) reconciletest.Scenario {
			other := shop(func(s *Shop) { s.Name = "zoo" })
			return of(func(p *reconciletest.Process) shopFunc {
				last := 0
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Slot != 0 {
						return ctrl.Result{}, nil
					}
					if sound {
						var all ShopList
						if err := p.APIReader().List(ctx, &all); err != nil {
							return ctrl.Result{}, err
						}
						last = 0
						for i := range all.Items {
							last = max(last, all.Items[i].Status.Slot)
						}
					}
					last++
					s.Status.Slot = last
					return ctrl.Result{}, c.Status().Update(ctx, s)
				}
			}, reconciletest.Create(shop()), reconciletest.Create(other))
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"status.slot: ", "crash after: update Shop/status default/web #1"},
	},
}
