package reconciletest_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// faultyOutages are operators that give up or lose data if an external API refuses a call or returns old data.
var faultyOutages = map[string]faulty{
	"GivesUpAfterAnOutage": {
		reason: "a service that does not answer counts as a failure for good",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName(), func(ctx context.Context, h hosting, s *Shop) error {
				if s.Status.Phase == "Failed" {
					return nil
				}
				err := keepOwn(ctx, h, s)
				if !sound && fakeapi.StatusOf(err) == http.StatusServiceUnavailable {
					return open(ctx, h.cluster, s, "Failed")
				}
				return err
			}, dropOwn, createAndDelete...)
		},
		fault: reconciletest.Faults.Outage,
		says:  []string{"outage from: query get site web", "503 Service Unavailable", "external is empty here"},
	},
	"GivesUpAfterThreeAttempts": {
		reason: "an outage lasts for more than three calls",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName(), func(ctx context.Context, h hosting, s *Shop) error {
				if h.memory[s.Name] == "xxx" {
					return open(ctx, h.cluster, s, "Failed")
				}
				err := keepOwn(ctx, h, s)
				if !sound && err != nil {
					h.memory[s.Name] += "x"
				}
				return err
			}, dropOwn, createAndDelete...)
		},
		fault: reconciletest.Faults.Outage,
		says:  []string{"outage from: ", "503 Service Unavailable\n", `"Failed" here`},
	},
	"WaitsForeverForTheDeletion": {
		reason: "the API still shows the site right after its deletion, and the operator does not look again",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName(), keepOwn, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				if s.Status.Phase == "Stuck" {
					return time.Hour, nil
				}
				if later, err := dropOwn(ctx, h, s); err != nil || later > 0 {
					return later, err
				}
				_, exists, err := h.find(ctx, s.Name)
				if err != nil || !exists {
					return 0, err
				}
				if sound {
					return patience, nil
				}
				return time.Hour, open(ctx, h.cluster, s, "Stuck")
			}, createAndDelete...)
		},
		fault: reconciletest.Faults.StaleAnswer,
		says:  []string{"stale answer to: query get site web", "Shop default/web: absent without faults, present here"},
	},
	"RenamedByDeletingFirst": {
		reason: "what the former site had is only in memory while the new one is refused",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName(), func(ctx context.Context, h hosting, s *Shop) error {
				if s.Status.Account == s.Spec.Motto {
					return nil
				}
				if !slices.Contains(s.Status.Nodes, s.Spec.Motto) { // all names that it may have
					s.Status.Nodes = append(s.Status.Nodes, s.Spec.Motto)
					if err := h.cluster.Status().Update(ctx, s); err != nil {
						return err
					}
				}
				if err := rename(ctx, h, s, sound); err != nil {
					return err
				}
				s.Status.Account, s.Status.Nodes = s.Spec.Motto, []string{s.Spec.Motto}
				return h.cluster.Status().Update(ctx, s)
			}, dropOwn, slices.Insert(painted("first", "second"), 1, reconciletest.Wait(time.Minute))...)
		},
		fault: reconciletest.Faults.TooManyRequests,
		says:  []string{"too many requests at: effect create site second #1", `external: [second].fields.Note: "since first" without faults, "since second" here`},
	},
}

// rename creates the site that is named after the shop's motto, with the note of the one before, and deletes all others that are recorded.
func rename(ctx context.Context, h hosting, s *Shop, sound bool) error {
	made := siteOf(s)
	made.Name, made.Token, made.Fields.Note = s.Spec.Motto, "", "since "+s.Spec.Motto
	_, done, err := h.find(ctx, made.Name)
	if err != nil {
		return err
	}
	former := slices.DeleteFunc(slices.Clone(s.Status.Nodes), func(name string) bool { return name == made.Name })
	for _, name := range former {
		was, exists, err := h.find(ctx, name)
		switch {
		case err != nil:
			return err
		case exists:
			made.Fields.Note = was.Fields.Note
		case sound && !done:
			return errors.New("the service does not show the former site, which is recorded")
		}
	}
	if !sound {
		if err := dropAll(ctx, h, former); err != nil {
			return err
		}
	}
	if !done {
		if _, err := h.Create(ctx, made); err != nil {
			return err
		}
	}
	return dropAll(ctx, h, former)
}

// dropAll deletes sites.
func dropAll(ctx context.Context, h hosting, names []string) error {
	for _, name := range names {
		if err := ignore(h.Delete(ctx, name), http.StatusNotFound); err != nil {
			return err
		}
	}
	return nil
}
