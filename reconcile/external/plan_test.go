package external_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external"
)

func TestPreview(t *testing.T) {
	ours := external.Record{Reference: external.Reference{Key: "alice"}, Version: "one", Generation: 1}
	pending := external.Record{Reference: external.Reference{Key: "alice", Pending: true}}
	mine, other := entry{Login: "alice", Owner: "default/alice", Quota: 1}, entry{Login: "alice", Owner: "somebody else", Quota: 7}
	for name, tc := range map[string]struct {
		reason   string
		record   external.Record
		edit     func(r *external.Resource[*Account, entry])
		exists   map[string]entry
		blind    []string // what a plan says without ObserveInPlans
		observed []string // what a plan says with ObserveInPlans
	}{
		"new": {
			"nothing is recorded", external.Record{}, nil, nil,
			[]string{"create alice, unless it exists: the plan has not asked"}, []string{"create alice"},
		},
		"same": {
			"only a comparison tells", ours, nil, map[string]entry{"alice": mine},
			[]string{"compare alice"}, []string{"none alice"},
		},
		"differs": {
			"as above", ours, nil, map[string]entry{"alice": {Login: "alice", Owner: "default/alice", Quota: 9}},
			[]string{"compare alice"}, []string{"apply alice"},
		},
		"gone": {
			"as above", ours, nil, nil,
			[]string{"compare alice"}, []string{"create alice"},
		},
		"version": {
			"a version that changes leads to an update", ours, func(r *external.Resource[*Account, entry]) {
				r.Version = func(context.Context, client.Client, *Account) (string, error) { return "two", nil }
			}, map[string]entry{"alice": mine},
			[]string{"apply alice"}, []string{"apply alice"},
		},
		"pending": {
			"the creation may have had an effect", pending, nil, map[string]entry{"alice": mine},
			[]string{"fails: whether alice was created is not known before it is observed"}, []string{"apply alice"},
		},
		"pending and gone": {
			"it had none", pending, nil, nil,
			[]string{"fails: whether alice was created is not known before it is observed"}, []string{"create alice"},
		},
		"theirs": {
			"it is left alone", external.Record{}, nil, map[string]entry{"alice": other},
			[]string{"create alice, unless it exists: the plan has not asked"}, []string{"fails: alice exists and was not created for this object"},
		},
		"renamed": {
			"the former one is deleted when the new one is there", external.Record{Reference: external.Reference{Key: "carol"}}, nil, nil,
			[]string{"create alice, unless it exists: the plan has not asked", "delete carol when alice is there"},
			[]string{"create alice", "delete carol when alice is there"},
		},
		"retained": {
			"nothing is deleted", external.Record{Reference: external.Reference{Key: "carol"}}, func(r *external.Resource[*Account, entry]) {
				r.Retain = func(*Account) bool { return true }
			}, nil,
			[]string{"create alice, unless it exists: the plan has not asked"}, []string{"create alice"},
		},
		"observed only": {
			"nothing is changed", external.Record{}, func(r *external.Resource[*Account, entry]) {
				r.ObserveOnly = func(*Account) bool { return true }
			}, nil,
			[]string{"none alice"}, []string{"waits: alice does not exist, and is not to be created"},
		},
		"created only": {
			"it is not changed", ours, func(r *external.Resource[*Account, entry]) {
				r.CreateOnly = func(*Account) bool { return true }
			}, map[string]entry{"alice": {Login: "alice", Owner: "default/alice", Quota: 9}},
			[]string{"none alice"}, []string{"none alice"},
		},
		"must exist": {
			"it is not created", external.Record{}, func(r *external.Resource[*Account, entry]) {
				r.MustExist = func(*Account) bool { return true }
			}, nil,
			[]string{"compare alice"}, []string{"waits: alice does not exist, and is not to be created"},
		},
		"no Secret": {
			"a pass would wait too", ours, func(r *external.Resource[*Account, entry]) {
				r.Version = func(context.Context, client.Client, *Account) (string, error) {
					return "", reconcile.Wait("SecretNotFound", 0, "Secret a does not exist")
				}
			}, nil,
			[]string{"waits: Secret a does not exist"}, []string{"waits: Secret a does not exist"},
		},
		"no key": {
			"a pass would fail too", external.Record{}, func(r *external.Resource[*Account, entry]) {
				r.Key = func(*Account) string { return "" }
			}, nil,
			[]string{"fails: the key is empty"}, []string{"fails: the key is empty"},
		},
	} {
		for _, observes := range []bool{false, true} {
			t.Run(name+map[bool]string{false: "", true: ", observed"}[observes], func(t *testing.T) {
				e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
					r.ObserveInPlans, r.Others = observes, nil
					r.Version = func(context.Context, client.Client, *Account) (string, error) { return "one", nil }
					if tc.edit != nil {
						tc.edit(r)
					}
				})
				e.api.entries = tc.exists
				e.object.Status.Account = tc.record
				changes, err := e.step.Preview(t.Context(), e.Client, e.object)
				require.NoError(t, err)
				var got []string
				for _, c := range changes {
					require.Empty(t, c.Differences, "no field is named")
					require.Equal(t, "account", c.Kind.Kind)
					switch {
					case c.Err != nil:
						text, _, _ := strings.Cut("fails: "+c.Err.Error(), ": it is left")
						got = append(got, text)
					case c.Waits != "":
						got = append(got, "waits: "+c.Waits)
					default:
						text := c.Action + " " + c.Name.Name
						if c.Note != "" {
							text += ", " + c.Note
						}
						if c.After != "" {
							text += " when " + c.After
						}
						got = append(got, text)
					}
				}
				if !observes {
					require.Equal(t, tc.blind, got, tc.reason)
					require.Empty(t, e.api.calls, "a plan does not call the API unless it is asked to")
					return
				}
				require.Equal(t, tc.observed, got, tc.reason)
				require.Subset(t, []string{"get alice"}, e.api.calls, "a plan only observes")
			})
		}
	}
}

// TestPreviewSparesTheAPI plans objects whose server does not answer. The plan waits for the quota, and does not call
// the server for each object.
func TestPreviewSparesTheAPI(t *testing.T) {
	e := newEnv(t, external.ByKey, func(r *external.Resource[*Account, entry]) {
		r.ObserveInPlans, r.Quota = true, rate.NewLimiter(rate.Every(time.Hour), 1)
	})
	e.clock.SetTime(time.Now()) // the rate limiter uses the real clock
	e.api.fail = func(string) (before, after error) { return external.Unreachable(errors.New("no route")), nil }
	plan := func(ctx context.Context) string {
		changes, err := e.step.Preview(ctx, e.Client, e.object)
		require.NoError(t, err)
		require.Len(t, changes, 1)
		if changes[0].Err != nil {
			return changes[0].Err.Error()
		}
		return changes[0].Waits
	}
	require.Contains(t, plan(t.Context()), "no route")
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.Contains(t, plan(limited), "would exceed context deadline")
	e.step.Quota = nil
	require.Contains(t, plan(t.Context()), "no route")
	require.Equal(t, []string{"get alice"}, e.api.calls, "the server is spared")
}
