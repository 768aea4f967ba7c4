package reconciletest_test

import (
	"context"
	"errors"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// bank is a service outside of the cluster that charges accounts. It charges once for each key that is not empty.
type bank struct {
	Charges []string
	keys    []string
}

func (b *bank) State() any { return b.Charges }

func (b *bank) charge(ctx context.Context, p *reconciletest.Process, account, key string) error {
	return p.Effect(ctx, "charge "+account, func() error {
		if key != "" && slices.Contains(b.keys, key) {
			return nil
		}
		b.Charges, b.keys = append(b.Charges, account), append(b.keys, key)
		return nil
	})
}

// faultyOutside are operators that lose what happens outside of the cluster, or do it twice.
var faultyOutside = map[string]faulty{
	"ChargedTwice": {
		reason: "the answer is lost, and nothing tells the bank that the second attempt is for the same order",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase == "Paid" {
						return ctrl.Result{}, nil
					}
					key := ""
					if sound {
						key = string(s.UID)
					}
					if err := p.External().(*bank).charge(ctx, p, s.Name, key); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, open(ctx, c, s, "Paid")
				}
			}, reconciletest.Create(shop()))
			s.External = func() reconciletest.External { return &bank{} }
			return s
		},
		fault: reconciletest.Faults.Timeout,
		says:  []string{"effect charge web", `external: ["web"] without faults, ["web","web"] here`},
	},
	"CleanupErrorOnlyLogged": {
		reason: "so that a deletion never hangs, the finalizer is removed also if the cleanup has failed",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp != nil {
						if err := accountsOf(p).drop(ctx, s.Name); err != nil && !errors.Is(err, errNoAccount) {
							if sound {
								return ctrl.Result{}, err
							}
							ctrl.LoggerFrom(ctx).Error(err, "Cannot drop the account")
						}
						return ctrl.Result{}, removeFinalizer(ctx, c, s)
					}
					if err := ensureFinalizer(ctx, c, s); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
				}
			}, createAndDelete...)
			s.External = newAccounts
			return s
		},
		fault: reconciletest.Faults.ConnectionRefused,
		says:  []string{"connection refused at: effect drop account web #1", `external: null without faults, ["web"] here`},
	},
	"FinalizerRemovedFirst": {
		reason: "after a crash the object is gone, and nobody knows any more what was to be cleaned up",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.DeletionTimestamp == nil {
						if err := ensureFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
						return ctrl.Result{}, accountsOf(p).keep(ctx, s.Name)
					}
					if !sound {
						if err := removeFinalizer(ctx, c, s); err != nil {
							return ctrl.Result{}, err
						}
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
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"crash after: update Shop default/web #2", `external: null without faults, ["web"] here`},
	},
	"AccountOfAnOldName": {
		reason: "the account of the old name stays when the field changes, also after the deletion; there is one alone, so no two runs mix",
		scenario: func(sound bool) reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					if s.DeletionTimestamp != nil {
						return ctrl.Result{}, closeAccounts(ctx, p, c, s)
					}
					if err := ensureFinalizer(ctx, c, s); err != nil {
						return ctrl.Result{}, err
					}
					if sound && !slices.Contains(s.Status.Nodes, s.Spec.Motto) {
						s.Status.Nodes = append(s.Status.Nodes, s.Spec.Motto) // all names that it ever had
						if err := c.Status().Update(ctx, s); err != nil {
							return ctrl.Result{}, err
						}
					}
					found, err := accountsOf(p).exists(ctx, s.Spec.Motto)
					if err != nil || found {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, accountsOf(p).keepFor(ctx, s.Spec.Motto)
				}
			}, append(painted("red", "blue"), reconciletest.Delete(shop()))...)
			s.External = newAccounts
			return s
		},
		says: []string{"red", "is left outside after the deletion"},
	},
}

// closeAccounts drops the accounts of the present name and of all recorded names, and then removes the finalizer.
func closeAccounts(ctx context.Context, p *reconciletest.Process, c client.Client, s *Shop) error {
	if !controllerutil.ContainsFinalizer(s, finalizer) {
		return nil
	}
	for _, name := range append([]string{s.Spec.Motto}, s.Status.Nodes...) {
		if err := accountsOf(p).drop(ctx, name); err != nil && !errors.Is(err, errNoAccount) {
			return err
		}
	}
	return removeFinalizer(ctx, c, s)
}
