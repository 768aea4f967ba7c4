package reconciletest_test

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
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

// imageOf returns the image of the shop's Deployment.
func imageOf(s *Shop) string { return s.Spec.Motto }

// isNotOpen returns an error if the shop is open.
func isNotOpen(env *reconciletest.Env) error {
	s := shop()
	if err := env.Get(context.Background(), client.ObjectKeyFromObject(s), s); err != nil {
		return err
	}
	if s.Status.Phase == "Open" {
		return fmt.Errorf("the shop is open, and its image %s does not exist", imageOf(s))
	}
	return nil
}

// onlyIf returns a scenario whose operator has a pass for the updates of a shop that the predicate lets through.
func onlyIf(updates predicate.Predicate, pass func(p *reconciletest.Process) shopFunc, actions ...reconciletest.Action) reconciletest.Scenario {
	return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
		b.For(&Shop{}, builder.WithPredicates(updates))
		return &shopReconciler{p.Client(), pass(p)}
	}, actions...)
}

// faultyReported are operators whose status says something wrong, or that do not notice a change.
var faultyReported = map[string]faulty{
	"ReadyFromWhatWasSent": {
		reason: "the Deployment was stored, and whether its pods start does not matter",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					want, is := deploymentOf(c, s), &appsv1.Deployment{}
					want.Spec.Template.Spec.Containers[0].Image = imageOf(s)
					err := c.Get(ctx, client.ObjectKeyFromObject(want), is)
					if apierrors.IsNotFound(err) {
						is, err = want, c.Create(ctx, want)
					}
					if err == nil && is.Spec.Template.Spec.Containers[0].Image != imageOf(s) {
						is.Spec.Template.Spec.Containers[0].Image = imageOf(s)
						err = c.Update(ctx, is)
					}
					if err != nil {
						return ctrl.Result{}, err
					}
					if sound && (is.Status.ObservedGeneration < is.Generation || is.Status.UpdatedReplicas == 0 || is.Status.AvailableReplicas == 0) {
						return ctrl.Result{}, open(ctx, c, s, "Starting")
					}
					return ctrl.Result{}, open(ctx, c, s, "Open")
				}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "registry.invalid/web:1" })).Then(isNotOpen),
				reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "web:2" }))
		},
		says: []string{"what must be true is not: the shop is open, and its image registry.invalid/web:1 does not exist"},
	},
	"ErrorNeverCleared": {
		reason: "an error that is over stays in the status, since only a change of the phase is written",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					from := source()
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(from), from); err != nil {
						meta.SetStatusCondition(&s.Status.Conditions, metav1.Condition{Type: "Degraded", Status: metav1.ConditionTrue, Reason: "NoSource", Message: err.Error()})
						return ctrl.Result{}, firstOf(err, c.Status().Update(ctx, s))
					}
					if sound && meta.RemoveStatusCondition(&s.Status.Conditions, "Degraded") {
						s.Status.Phase = ""
					}
					return ctrl.Result{}, open(ctx, c, s, from.Data["colour"])
				}
			}, reconciletest.Create(shop()))
			s.Objects = []client.Object{source()}
			return s
		},
		fault: reconciletest.Faults.InternalError,
		says:  []string{"at: get ConfigMap default/source #1", "Shop default/web: status.conditions: nothing without faults, [{"},
	},
	"PassesCounted": {
		reason: "a number of passes is not a state, since nobody knows how many there are",
		scenario: func(sound bool) reconciletest.Scenario {
			return byGeneration(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound {
						if s.Status.Slot == int(s.Generation) {
							return ctrl.Result{}, nil
						}
						s.Status.Slot = int(s.Generation)
					} else {
						s.Status.Slot++
					}
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		kind:  reconciletest.Findings.DoesNotRest,
		says:  []string{"one more pass still had to update Shop/status default/web", "status.slot: from 1 to 2"},
		never: []string{"a watch is missing"},
	},
	"CountedBesideTheWrite": {
		reason: "the number of updates is stored by another request, so that a crash between the two loses one",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					child := owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})
					is := config(s.Name)
					if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); client.IgnoreNotFound(err) != nil {
						return ctrl.Result{}, err
					}
					updates := s.Status.Slot
					if is.Data["motto"] != s.Spec.Motto {
						updates++
					}
					if sound {
						updates = int(s.Generation) // each change of the spec is one update
					}
					if err := ensure(ctx, c, s, child); err != nil || updates == s.Status.Slot {
						return ctrl.Result{}, err
					}
					s.Status.Slot = updates
					return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s))
				}
			}, painted("red", "blue")...)
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"crash after: ", `Shop default/web: status.slot: `},
	},
	"MarkedBeforeTheWork": {
		reason: "the status says that a generation was observed before the work for it is done, and after an error nothing is left to do",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Slot == int(s.Generation) {
						return ctrl.Result{}, nil
					}
					mark := func() error {
						s.Status.Slot = int(s.Generation)
						return client.IgnoreNotFound(c.Status().Update(ctx, s))
					}
					if !sound {
						if err := mark(); err != nil {
							return ctrl.Result{}, err
						}
					}
					if err := ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto})); err != nil || !sound {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, mark()
				}
			}, reconciletest.Create(shop()), changeMotto)
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"ConfigMap default/web #1", "ConfigMap default/web: present without faults, absent here"},
	},
	"AnnotationFilteredOut": {
		reason: "an annotation asks for a restart, and only changes of the spec cause a pass",
		scenario: func(sound bool) reconciletest.Scenario {
			const restart = "example.com/restart"
			updates := predicate.Predicate(predicate.GenerationChangedPredicate{})
			if sound {
				updates = predicate.Or[client.Object](updates, predicate.AnnotationChangedPredicate{})
			}
			return onlyIf(updates, func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"restart": s.Annotations[restart]}))
				}
			}, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) {
				metav1.SetMetaDataAnnotation(&s.ObjectMeta, restart, "1")
			}))
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{"a watch is missing: modified Shop default/web triggered no pass", "update ConfigMap default/web", "correct the watch's predicate"},
	},
	"LabelFilteredOut": {
		reason: "a label says in which group a shop is, and an update counts only if the spec differs",
		scenario: func(sound bool) reconciletest.Scenario {
			updates := predicate.Predicate(predicate.GenerationChangedPredicate{})
			if sound {
				updates = predicate.Or[client.Object](updates, predicate.LabelChangedPredicate{})
			}
			return onlyIf(updates, func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, client.IgnoreNotFound(open(ctx, c, s, "In"+s.Labels["group"]))
				}
			}, reconciletest.Create(shop()), reconciletest.Change(shop(), func(s *Shop) { s.Labels = map[string]string{"group": "A"} }))
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{"a watch is missing: modified Shop default/web triggered no pass", "update Shop/status default/web"},
	},
	"GenerationOfAKindWithoutOne": {
		reason: "a ConfigMap has no generation, so the predicate for changes of the spec leaves out all its updates",
		scenario: func(sound bool) reconciletest.Scenario {
			return managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				updates := predicate.Predicate(predicate.GenerationChangedPredicate{})
				if sound {
					updates = predicate.ResourceVersionChangedPredicate{}
				}
				b.For(&Shop{}).Owns(&corev1.ConfigMap{}, builder.WithPredicates(updates))
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Name, map[string]string{"motto": s.Spec.Motto}))
				}}
			}, reconciletest.Create(shop()), reconciletest.Change(config("web"), func(m *corev1.ConfigMap) { m.Data = nil }))
		},
		kind: reconciletest.Findings.DoesNotRest,
		says: []string{"a watch is missing: modified ConfigMap default/web triggered no pass", "update ConfigMap default/web"},
	},
}
