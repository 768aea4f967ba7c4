package reconciletest_test

import (
	"context"
	"errors"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
	"github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi"
)

// faultyForeign are operators that change or delete what is not theirs in an API.
var faultyForeign = map[string]faulty{
	"TakenOverByName": {
		reason: "a site that has the right name counts as the shop's own",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName("web"), func(ctx context.Context, h hosting, s *Shop) error {
				found, exists, err := h.find(ctx, s.Name)
				if sound || err != nil || !exists {
					return firstOf(err, keepOwn(ctx, h, s))
				}
				found.Owner, found.Fields = string(s.UID), site{Motto: s.Spec.Motto}
				return h.Update(ctx, found)
			}, dropOwn, createAndDelete...)
		},
		kind: reconciletest.Findings.ChangesForeign,
		says: []string{"pass 1 for Shop default/web changes site web, which belongs to others\n", "That a thing has the right name does not prove whose it is"},
	},
	"DeletedByName": {
		reason: "the site of others is left alone at first, and deleted with the shop",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName("web"), keepOwn, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				if sound {
					return dropOwn(ctx, h, s)
				}
				return 0, ignore(h.Delete(ctx, s.Name), http.StatusNotFound)
			}, createAndDelete...)
		},
		kind: reconciletest.Findings.ChangesForeign,
		says: []string{"for Shop default/web deletes site web, which belongs to others\n"},
	},
	"ConflictTakenAsOwn": {
		reason: "a creation whose answer was lost is refused the next time, and so is one of a name that others have",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName("web"), func(ctx context.Context, h hosting, s *Shop) error {
				if s.Status.Account != "" || s.Status.Phase == "Taken" {
					return nil
				}
				_, err := h.Create(ctx, siteOf(s))
				if sound && fakeapi.StatusOf(err) == http.StatusConflict {
					found, exists, err := h.find(ctx, s.Name)
					switch {
					case err != nil || !exists:
						return firstOf(err, errors.New("the service says that the name is taken, and does not show by whom"))
					case found.Owner != string(s.UID):
						return open(ctx, h.cluster, s, "Taken")
					}
				}
				if ignore(err, http.StatusConflict) != nil {
					return err
				}
				s.Status.Account = s.Name
				return h.cluster.Status().Update(ctx, s)
			}, func(ctx context.Context, h hosting, s *Shop) (time.Duration, error) {
				if s.Status.Account == "" {
					return dropOwn(ctx, h, s)
				}
				return 0, ignore(h.Delete(ctx, s.Status.Account), http.StatusNotFound)
			}, createAndDelete...)
		},
		kind: reconciletest.Findings.ChangesForeign,
		says: []string{"409 Conflict: site web exists", "deletes site web, which belongs to others"},
	},
	"SuccessorDeleted": {
		reason: "the process dies after the deletion, and another shop takes the name before the deletion is repeated",
		scenario: func(sound bool) reconciletest.Scenario {
			other := shop(func(s *Shop) { s.Name, s.Spec.Motto = "api", "shared" })
			s := managed(func(p *reconciletest.Process, b *ctrl.Builder) ctrlreconcile.Reconciler {
				b.For(&Shop{})
				return &shopReconciler{p.Client(), sharedSites(p, sound)}
			}, reconciletest.Create(shop(func(s *Shop) { s.Spec.Motto = "shared" })), reconciletest.Delete(shop()), reconciletest.Create(other))
			s.External = func() reconciletest.External { return byName()() }
			return s
		},
		fault: reconciletest.Faults.CrashDowntime,
		says:  []string{"crash with downtime after: effect delete site shared #1", "after \"create Shop default/api\" the state is not the same as without faults:\n  external: [{"},
	},
	"NoteOfOthersOverwritten": {
		reason: "the fields that were read are written back with one of them changed, and they are old",
		scenario: func(sound bool) reconciletest.Scenario {
			return hosted(byName(), func(ctx context.Context, h hosting, s *Shop) error {
				found, exists, err := h.find(ctx, s.Name)
				if err == nil && exists && !sound && found.Fields.Motto != s.Spec.Motto {
					found.Version = 0 // not checked
					found.Fields.Motto = s.Spec.Motto
					return h.Update(ctx, found)
				}
				return firstOf(err, keepOwn(ctx, h, s))
			}, dropOwn, reconciletest.Create(shop()), reconciletest.DoExternal("a person adds a note", func(e reconciletest.External) error {
				found, err := e.(*sites).Get(context.Background(), "web")
				found.Fields.Note = "important"
				return firstOf(err, e.(*sites).Update(context.Background(), found))
			}), reconciletest.Change(shop(), func(s *Shop) { s.Spec.Motto = "always open" }))
		},
		fault: reconciletest.Faults.StaleAnswer,
		says:  []string{"stale answer to: query get site web", `external: [web].fields.Note: "important" without faults, "" here`},
	},
}

// sharedSites keeps a site for each shop that is named after the shop's motto.
func sharedSites(p *reconciletest.Process, sound bool) shopFunc {
	h := hosting{Client: p.External().(*sites).Client(p), process: p, cluster: p.Client()}
	return func(ctx context.Context, c client.Client, s *Shop) (ctrl.Result, error) {
		if err := p.APIReader().Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		named := s.DeepCopyObject().(*Shop)
		named.Name = s.Spec.Motto
		if s.DeletionTimestamp == nil {
			if err := ensureFinalizer(ctx, c, s); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, keepOwn(ctx, h, named)
		}
		var later time.Duration
		var err error
		if sound {
			later, err = dropOwn(ctx, h, named)
		} else {
			err = ignore(h.Delete(ctx, named.Name), http.StatusNotFound)
		}
		if err != nil || later > 0 {
			return resultOf(later, err)
		}
		return ctrl.Result{}, removeFinalizer(ctx, c, s)
	}
}
