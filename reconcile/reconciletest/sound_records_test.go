//go:build !race

// These tests are left out under the race detector: an exploration runs one pass at a time, so it has no races, and with the detector it
// takes ten times as long.

package reconciletest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// soundRecords are scenarios whose operators record what they are about to do, or which object is next.
var soundRecords = map[string]soundScenario{
	"RandomNameRecorded": {
		reason: "the random name is in the status before the child of that name exists, so there is never a second one",
		scenario: func() reconciletest.Scenario {
			return of(func(*reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Account == "" {
						s.Status.Account = s.Name + "-" + strings.ToLower(rand.Text()[:8])
						return ctrl.Result{}, client.IgnoreNotFound(c.Status().Update(ctx, s)) // its event triggers another pass
					}
					return ctrl.Result{}, ensure(ctx, c, s, owned(c, s, s.Status.Account, map[string]string{"motto": s.Spec.Motto}))
				}
			}, reconciletest.Create(shop()), changeMotto, reconciletest.Delete(shop()))
		},
	},
	"MarkAndSweep": {
		reason: "a pass marks what it wants with the generation, and deletes what has another mark in exactly that version",
		scenario: func() reconciletest.Scenario {
			return of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil || s.DeletionTimestamp != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					mark := strconv.FormatInt(s.Generation, 10)
					for _, name := range s.Spec.Counters {
						child := config(name)
						_, err := controllerutil.CreateOrUpdate(ctx, c, child, func() error {
							metav1.SetMetaDataLabel(&child.ObjectMeta, "mark", mark)
							return controllerutil.SetControllerReference(s, child, c.Scheme())
						})
						if err != nil {
							return ctrl.Result{}, err
						}
					}
					return ctrl.Result{}, sweep(ctx, c, s, mark)
				}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Counters = []string{"a", "b"} })),
				reconciletest.Change(shop(), func(s *Shop) { s.Spec.Counters = []string{"b", "c"} }))
		},
	},
	"WorkListInAConfigMap": {
		reason: "an entry is removed only after its work, which may be done twice",
		scenario: func() reconciletest.Scenario {
			list := config("todo")
			list.Data = map[string]string{"todo": "ann bob"}
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, _ *Shop) (ctrl.Result, error) {
					is := config("todo")
					if err := c.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil {
						return ctrl.Result{}, err
					}
					next, rest, _ := strings.Cut(is.Data["todo"], " ")
					if next == "" {
						return ctrl.Result{}, nil
					}
					if err := accountsOf(p).keepFor(ctx, next); err != nil {
						return ctrl.Result{}, err
					}
					is.Data["todo"] = rest
					return ctrl.Result{}, c.Update(ctx, is) // its event triggers the pass for the next entry
				}
			}, reconciletest.Create(shop()), reconciletest.Change(list, func(m *corev1.ConfigMap) {
				m.Data["todo"] = strings.TrimSpace(m.Data["todo"] + " cid")
			}))
			s.Objects, s.External = []client.Object{list}, newAccounts
			return s
		},
	},
	"LeaseThatExpires": {
		reason: "one shop works at a time; a lease that its holder has not given back after a crash is over in a minute",
		scenario: func() reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					if s.Status.Phase == "Open" {
						return ctrl.Result{}, release(ctx, p, c, s)
					}
					wait, err := acquire(ctx, p, c, s)
					if err != nil || wait > 0 {
						return ctrl.Result{RequeueAfter: wait}, err
					}
					if err := accountsOf(p).keepFor(ctx, s.Name); err != nil {
						return ctrl.Result{}, err
					}
					if err := open(ctx, c, s, "Open"); err != nil {
						return ctrl.Result{}, err
					}
					return ctrl.Result{}, release(ctx, p, c, s)
				}
			}, reconciletest.Create(shop()), reconciletest.Create(zoo()))
			s.External = newAccounts
			return s
		},
	},
	"CounterWithRetries": {
		reason: "each shop counts itself in one object; a conflict is retried with the object as it is now, and the shop's entry tells that it was counted",
		scenario: func() reconciletest.Scenario {
			visitors := config("visitors")
			visitors.Data = map[string]string{"total": "0"}
			s := of(func(p *reconciletest.Process) shopFunc {
				return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
					var last error // before client-go v0.37 RetryOnConflict returns nil in place of an error that wraps context.DeadlineExceeded
					_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
						last = countIn(ctx, p.APIReader(), c, s.Name)
						return last
					})
					return ctrl.Result{}, last
				}
			}, reconciletest.Create(shop()), reconciletest.Create(zoo()))
			s.Objects = []client.Object{visitors}
			return s
		},
	},
	"CollectedByComparison": {
		reason: "no finalizer is needed if accounts without a shop, and shops without an account, are looked for every minute",
		scenario: func() reconciletest.Scenario {
			s := of(func(p *reconciletest.Process) shopFunc {
				go collect(p)
				return func(ctx context.Context, _ client.Client, s *Shop) (ctrl.Result, error) {
					return resultOf(time.Minute, client.IgnoreNotFound(accountsOf(p).keep(ctx, s.Name)))
				}
			}, reconciletest.Create(shop()), reconciletest.Delete(shop()), reconciletest.Wait(3*time.Minute))
			s.External, s.Horizon = newAccounts, 30*time.Second // shorter than the period
			return s
		},
	},
}

// countIn counts a shop in the ConfigMap visitors, unless it is counted already.
func countIn(ctx context.Context, reader client.Reader, c client.Client, shop string) error {
	is := config("visitors")
	if err := reader.Get(ctx, client.ObjectKeyFromObject(is), is); err != nil || is.Data[shop] != "" {
		return err
	}
	total, err := strconv.Atoi(is.Data["total"])
	if err != nil {
		return err
	}
	is.Data[shop], is.Data["total"] = "counted", strconv.Itoa(total+1)
	return c.Update(ctx, is)
}

// sweep deletes the ConfigMaps of the shop whose label mark has another value. If a ConfigMap has changed since the list, it is not
// deleted.
func sweep(ctx context.Context, c client.Client, s *Shop, mark string) error {
	var all corev1.ConfigMapList
	if err := c.List(ctx, &all, client.InNamespace(s.Namespace)); err != nil {
		return err
	}
	for i := range all.Items {
		m := &all.Items[i]
		if !metav1.IsControlledBy(m, s) || m.Labels["mark"] == mark {
			continue
		}
		if err := c.Delete(ctx, m, client.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

const leaseTime = time.Minute

// readLease returns the lease of all shops. It creates the lease if there is none.
func readLease(ctx context.Context, p *reconciletest.Process, c client.Client) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shops"}}
	err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(lease), lease)
	if apierrors.IsNotFound(err) {
		err = c.Create(ctx, lease)
	}
	return lease, err
}

// acquire makes the shop the holder of the lease, or returns how long another shop may hold it.
func acquire(ctx context.Context, p *reconciletest.Process, c client.Client, s *Shop) (wait time.Duration, err error) {
	lease, err := readLease(ctx, p, c)
	if err != nil {
		return 0, err
	}
	if holder := lease.Spec.HolderIdentity; holder != nil && *holder != s.Name {
		if left := time.Until(lease.Spec.RenewTime.Add(leaseTime)); left > 0 {
			return left, nil
		}
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = &s.Name, new(metav1.NowMicro())
	return 0, c.Update(ctx, lease)
}

// release makes nobody the holder of the lease if the shop is its holder.
func release(ctx context.Context, p *reconciletest.Process, c client.Client, s *Shop) error {
	lease, err := readLease(ctx, p, c)
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != s.Name {
		return err
	}
	lease.Spec.HolderIdentity = nil
	return c.Update(ctx, lease)
}

// collect deletes accounts that belong to no shop, every minute.
func collect(p *reconciletest.Process) {
	for p.Context().Err() == nil {
		select {
		case <-p.Context().Done():
		case <-time.After(time.Minute):
			_ = collectOnce(p) // the next minute tries again
		}
	}
}

func collectOnce(p *reconciletest.Process) error {
	var names []string
	err := p.Query(p.Context(), "accounts", func() error {
		names = slices.Clone(p.External().(*accounts).All)
		return nil
	})
	if err != nil {
		return fmt.Errorf("list accounts: %w", err)
	}
	for _, name := range names {
		err := p.APIReader().Get(p.Context(), client.ObjectKey{Namespace: "default", Name: name}, shop())
		if apierrors.IsNotFound(err) {
			err = accountsOf(p).drop(p.Context(), name)
		}
		if err != nil && !errors.Is(err, errNoAccount) {
			return err
		}
	}
	return nil
}
