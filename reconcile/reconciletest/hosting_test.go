package reconciletest_test

import (
	"context"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// site is what a hosting service outside of the cluster keeps for a shop.
type site struct{ Motto, Note string }

type sites = fakeapi.API[site]

// hosting is an operator's access to the hosting service in one process.
type hosting struct {
	*fakeapi.Client[site]
	process *reconciletest.Process
	cluster client.Client
	memory  map[string]string // it is lost with the process
}

// patience is how long an operator waits until it believes that there is nothing to delete. It is longer than the time for which the API
// may return old data.
const patience = 15 * time.Second

// hosted returns the scenario of an operator that keeps a site for each shop, and drops the site before it removes the shop's finalizer. If
// it has to look again, drop returns a delay. The operator reads each shop from the API server, so it never sees an old version.
func hosted(api func() *sites, keep func(ctx context.Context, h hosting, s *Shop) error,
	drop func(ctx context.Context, h hosting, s *Shop) (time.Duration, error), actions ...reconciletest.Action,
) reconciletest.Scenario {
	scenario := of(func(p *reconciletest.Process) shopFunc {
		h := hosting{p.External().(*sites).Client(p), p, p.Client(), map[string]string{}}
		return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
			switch err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); {
			case err != nil:
				return ctrl.Result{}, client.IgnoreNotFound(err)
			case s.DeletionTimestamp == nil:
				if err := ensureFinalizer(ctx, c, s); err != nil {
					return ctrl.Result{}, err
				}
				return ctrl.Result{}, keep(ctx, h, s)
			case !controllerutil.ContainsFinalizer(s, finalizer):
				return ctrl.Result{}, nil
			}
			if later, err := drop(ctx, h, s); err != nil || later > 0 {
				return resultOf(later, err)
			}
			return ctrl.Result{}, removeFinalizer(ctx, c, s)
		}
	}, actions...)
	scenario.External = func() reconciletest.External { return api() }
	return scenario
}

// byName returns a service in which names are unique. It has things of other owners with the given names.
func byName(others ...string) func() *sites {
	return func() *sites {
		s := &sites{Kind: "site"}
		for _, name := range others {
			s.Others = append(s.Others, fakeapi.Thing[site]{Name: name, Owner: "somebody else", Fields: site{Motto: "ours"}})
		}
		return s
	}
}

// byID returns a service in which each thing gets an ID.
func byID() *sites { return &sites{Kind: "site", GivesIDs: true} }

// siteOf returns the site of a shop. Its token shows the service that a second creation is for the same shop.
func siteOf(s *Shop) fakeapi.Thing[site] {
	return fakeapi.Thing[site]{Name: s.Name, Owner: string(s.UID), Token: string(s.UID), Fields: site{Motto: s.Spec.Motto}}
}

// find returns the site with this name, if there is one.
func (h hosting) find(ctx context.Context, name string) (found fakeapi.Thing[site], exists bool, err error) {
	found, err = h.Get(ctx, name)
	return found, err == nil, ignore(err, http.StatusNotFound)
}

// ignore returns nil if the error is an answer with that status.
func ignore(err error, status int) error {
	if fakeapi.StatusOf(err) == status {
		return nil
	}
	return err
}

// keepOwn creates or updates the site with the shop's name. If another owner has a site of that name, keepOwn does not change it.
func keepOwn(ctx context.Context, h hosting, s *Shop) error {
	found, exists, err := h.find(ctx, s.Name)
	switch {
	case err != nil:
		return err
	case !exists:
		_, err := h.Create(ctx, siteOf(s))
		return err
	case found.Owner != string(s.UID):
		return open(ctx, h.cluster, s, "Taken")
	case found.Fields.Motto != s.Spec.Motto:
		found.Fields.Motto = s.Spec.Motto
		return h.Update(ctx, found) // the service refuses it if it has another version than the one read
	}
	return nil
}

// dropOwn deletes the site with the shop's name if it belongs to the shop.
func dropOwn(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
	found, exists, err := h.find(ctx, s.Name)
	switch {
	case err != nil:
		return 0, err
	case !exists && time.Since(s.DeletionTimestamp.Time) < patience:
		return patience, nil
	case !exists || found.Owner != string(s.UID):
		return 0, nil
	}
	return 0, ignore(h.Delete(ctx, found.ID), http.StatusNotFound)
}

// keepRecorded creates a site, and records its ID in the status.
func keepRecorded(ctx context.Context, h hosting, s *Shop) error {
	if s.Status.Account != "" {
		return nil
	}
	made, err := h.Create(ctx, siteOf(s))
	if err != nil {
		return err
	}
	s.Status.Account = made.ID
	return h.cluster.Status().Update(ctx, s)
}

// dropRecorded deletes the site whose ID is in the status. If the status has none, the answer to a creation may have been lost: the token
// leads to the ID.
func dropRecorded(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
	if err := keepRecorded(ctx, h, s); err != nil {
		return 0, err
	}
	return 0, ignore(h.Delete(ctx, s.Status.Account), http.StatusNotFound)
}
