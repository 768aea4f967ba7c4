package reconciletest_test

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// faultyCreations are operators that create something twice in an API, or leave it there.
var faultyCreations = map[string]faulty{
	"CreatedAgainAfterAStaleAnswer": {
		reason: "the list does not show yet what was created just now, and nothing tells the API that it is the same site",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byID, func(ctx context.Context, h hosting, s *Shop) error {
				all, err := h.List(ctx)
				if err != nil || slices.ContainsFunc(all, func(t fakeapi.Thing[site]) bool { return t.Owner == string(s.UID) }) {
					return err
				}
				made := siteOf(s)
				if !sound {
					made.Token = ""
				}
				_, err = h.Create(ctx, made)
				return err
			}, dropListed, createAndDelete...)
		},
		fault: reconciletest.Faults.StaleAnswer,
		kind:  reconciletest.Findings.CreatesDuplicate,
		says: []string{
			"It creates a duplicate after one fault: stale answer to: query list sites #2.", "site web, for Shop default/web: created in pass 1 and in pass 2",
			"the answer shows what was there before the last write",
		},
	},
	"IDInMemory": {
		reason: "another process does not know what the one before has created",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byID, func(ctx context.Context, h hosting, s *Shop) error {
				if h.memory[s.Name] != "" {
					return nil
				}
				made := siteOf(s)
				if !sound {
					made.Token = ""
				}
				made, err := h.Create(ctx, made)
				h.memory[s.Name] = made.ID
				return err
			}, dropListed, createAndDelete...)
		},
		fault: reconciletest.Faults.CrashAfter,
		says:  []string{"creates a duplicate: ", "crash after: effect create site web #1", "the same thing exists twice outside"},
	},
	"IDRecordedAfterTheCreation": {
		reason: "if the process dies between the two, and the shop is deleted in that time, nobody knows of the site",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byID, keepRecorded, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				if !sound && s.Status.Account == "" {
					return 0, nil
				}
				return dropRecorded(ctx, h, s)
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.CrashDowntime,
		kind:  reconciletest.Findings.LeavesOutside,
		says: []string{
			"It leaves something outside of the cluster after one fault: crash with downtime after: effect create site web #1",
			"this is left outside, and its object is deleted:\n  site web, created in pass 1 for Shop default/web",
		},
	},
	"RefusalTakenAsGone": {
		reason: "each status from 400 to 499 counts as gone, also 429",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byID, keepRecorded, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				if err := keepRecorded(ctx, h, s); err != nil {
					return 0, err
				}
				err := h.Delete(ctx, s.Status.Account)
				if status := fakeapi.StatusOf(err); !sound && status >= 400 && status < 500 {
					return 0, nil
				}
				return 0, ignore(err, http.StatusNotFound)
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.TooManyRequests,
		kind:  reconciletest.Findings.LeavesOutside,
		says:  []string{"too many requests at: effect delete site web #1", "429 Too Many Requests", "this is left outside"},
	},
	"FinalizerRemovedInAnOutage": {
		reason: "so that a deletion never hangs, an API that does not answer counts as gone for good",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byID, keepRecorded, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				later, err := dropRecorded(ctx, h, s)
				if !sound {
					err = ignore(err, http.StatusServiceUnavailable)
				}
				return later, err
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.Outage,
		kind:  reconciletest.Findings.LeavesOutside,
		says:  []string{"outage from: effect delete site web #1", "503 Service Unavailable", "site web, created in pass 1 for Shop default/web"},
	},
	"NothingIsCleanedUp": {
		reason: "the site of a deleted shop stays, and another shop still has one, so that the service is never empty",
		scenario: func(sound bool) reconciletest.Scenario {
			other := shop(func(s *Shop) { s.Name = "api" })
			return hosted(byName(), keepOwn, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				if sound {
					return dropOwn(ctx, h, s)
				}
				return 0, nil
			}, reconciletest.Create(shop()), reconciletest.Create(other), reconciletest.Delete(shop()))
		},
		says: []string{"the object of each of these things is deleted, and this is left outside after the deletion:\n  site web, created in pass 1 for Shop default/web\n"},
	},
	"NotFoundBelieved": {
		reason: "the API does not show yet what was created just now, so the finalizer is removed and the site stays",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName(), keepOwn, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				later, err := dropOwn(ctx, h, s)
				if !sound {
					later = 0
				}
				return later, err
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.StaleAnswer,
		kind:  reconciletest.Findings.LeavesOutside,
		says:  []string{"stale answer to: query get site web", "404 Not Found: site web", "this is left outside"},
	},
}

// dropListed deletes all sites that the API lists for the shop.
func dropListed(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
	all, err := h.List(ctx)
	if err != nil {
		return 0, err
	}
	for _, t := range all {
		if t.Owner != string(s.UID) {
			continue
		}
		if err := h.Delete(ctx, t.ID); ignore(err, http.StatusNotFound) != nil {
			return 0, err
		}
	}
	if time.Since(s.DeletionTimestamp.Time) < patience { // the list may be behind
		return patience, nil
	}
	return 0, nil
}
