package reconciletest_test

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

var createAndDelete = []reconciletest.Action{reconciletest.Create(shop()), reconciletest.Delete(shop())}

var faultyFinalizers = map[string]faulty{
	"FinalizerAfterEffect": {
		reason: "if the object is deleted between the two, its account is left behind",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp != nil {
						if err := accountsOf(p).drop(ctx, s.Name); err != nil && !errors.Is(err, errNoAccount) {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if sound {
						if err := ensureFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
					}
					if err := accountsOf(p).keep(ctx, s.Name); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, ensureFinalizer(ctx, c, s)
				}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.CrashDowntime,
		says:  []string{"crash with downtime after: effect keep account web #1", `external: null without faults, ["web"] here`},
	},
	"FinalizersOfOthersOverwritten": {
		reason: "the finalizers of others are lost",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp != nil {
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if sound {
						return ctrl.Result{}, ensureFinalizer(ctx, c, s)
					}
					if controllerutil.ContainsFinalizer(s, finalizer) {
						return ctrl.Result{}, nil
					}
					patch := []byte(`{"metadata":{"finalizers":["` + finalizer + `"]}}`)
					return ctrl.Result{}, c.Patch(ctx, s, client.RawPatch(types.MergePatchType, patch))
				}
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.Conflict,
		says:  []string{"conflict at: patch Shop default/web #1", "lost what another writer wrote just before: the finalizer"},
	},
	"CleanupNotIdempotent": {
		reason: "after a crash the account does not exist any more, and the object is never removed",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp == nil {
						if err := ensureFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					if !controllerutil.ContainsFinalizer(s, finalizer) {
						return ctrl.Result{}, nil
					}
					err := accountsOf(p).drop(ctx, s.Name)
					if sound && errors.Is(err, errNoAccount) {
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
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"effect drop account web", "Shop default/web: absent without faults, present here", errNoAccount.Error()},
	},
	"CleanupTrustsTheCache": {
		reason: "the child is deleted only if the cache shows it, and no owner reference works across namespaces",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					child := config(s.Name)
					child.Namespace = "kube-system"
					if s.DeletionTimestamp == nil {
						if err := ensureFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
						if err := c.Get(ctx, client.ObjectKeyFromObject(child), child); !apierrors.IsNotFound(err) {
							return ctrl.Result{}, err
						}
						if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil || s.DeletionTimestamp != nil {
							return ctrl.Result{}, client.IgnoreNotFound(err)
						}
						return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, child))
					}
					if !sound {
						if err := c.Get(ctx, client.ObjectKeyFromObject(child), child); apierrors.IsNotFound(err) {
							return ctrl.Result{}, removeFinalizer(ctx, c, s)
						}
					}
					if err := c.Delete(ctx, child); client.IgnoreNotFound(err) != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, removeFinalizer(ctx, c, s)
				}
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.CrashDowntimeUnseen,
		says:  []string{"crash with downtime unseen after: create ConfigMap kube-system/web #1", "ConfigMap kube-system/web: absent without faults, present here"},
	},
	"EdgeTriggeredDeletion": {
		reason: "nobody gets the event of a deletion while the operator is down",
		scenario: func(sound bool) reconciletest.Scenario {
			s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{})
				if !sound {
					b.Watches(&Shop{}, handler.Funcs{DeleteFunc: func(ctx context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[ctrl.Request]) {
						_ = accountsOf(p).drop(ctx, e.Object.GetName())
					}})
				}
				return &shopReconciler{p.Client(), func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if sound && s.DeletionTimestamp != nil {
						if err := accountsOf(p).drop(ctx, s.Name); err != nil && !errors.Is(err, errNoAccount) {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if sound {
						if err := ensureFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
					}
					return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
				}}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.CrashBefore,
		says:  []string{"effect drop account web", "external"},
	},
	"FinalizerAddedWhileDeleting": {
		reason: "another controller's finalizer is still on the object, and the API server refuses new ones",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp != nil && (sound || controllerutil.ContainsFinalizer(s, finalizer)) {
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					return ctrl.Result{}, ensureFinalizer(ctx, c, s)
				}
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.ForeignFinalizer,
		says:  []string{"foreign finalizer at: deletion of Shop default/web #1", "only the finalizer of another controller is left", "no longer has your finalizer needs nothing more"},
	},
	"EffectAfterTheCleanup": {
		reason: "once its own finalizer is gone, the operator takes the object for one that is wanted",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if controllerutil.ContainsFinalizer(s, finalizer) && s.DeletionTimestamp != nil {
						if err := accountsOf(p).drop(ctx, s.Name); err != nil && !errors.Is(err, errNoAccount) {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if s.DeletionTimestamp != nil && sound {
						return ctrl.Result{}, nil
					}
					if s.DeletionTimestamp == nil {
						if err := ensureFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					return ctrl.Result{}, accountsOf(p).keepFor(ctx, s.Name)
				}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.ForeignFinalizer,
		says:  []string{`external: null without faults, ["web"] here`},
	},
	"FinalizerRemovalErrorSwallowed": {
		reason: "the removal is not retried, and the object is never removed",
		scenario: func(sound bool) reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp == nil {
						return ctrl.Result{}, ensureFinalizer(ctx, c, s)
					}
					err := removeFinalizer(ctx, c, s)
					if !sound {
						err = nil
					}
					return ctrl.Result{}, err
				}
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.InternalError,
		says:  []string{"update Shop default/web #2", "Shop default/web: absent without faults, present here"},
	},
}
