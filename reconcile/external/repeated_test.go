package external_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/opblocks/opblocks/reconcile/external"
)

// TestRepeatedCreation: the answer to a creation was lost, and then the desired state changes. The step repeats the creation with
// the same token, and the API creates nothing.
func TestRepeatedCreation(t *testing.T) {
	version := func(_ context.Context, _ client.Client, a *Account) (string, error) {
		return strconv.Itoa(a.Spec.Quota), nil
	}
	nothingDiffers := func(external.Reference, entry, entry) bool { return false }
	for name, tc := range map[string]struct {
		reason string
		edit   func(*external.Resource[*Account, entry])
	}{
		"Version": {"What was created has the version of the first pass.", func(r *external.Resource[*Account, entry]) { r.Version, r.Differs = version, nothingDiffers }},
		"Grace": {
			"The API does not show what was created for a while.",
			func(r *external.Resource[*Account, entry]) {
				r.Version, r.Differs, r.Grace = version, nothingDiffers, time.Minute
			},
		},
		"Differs": {"The difference is seen at once, and not by the next poll.", func(*external.Resource[*Account, entry]) {}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &tagged{byID: map[string]entry{}, lose: true, noFind: true}
			e := newEnv(t, external.ByToken, func(r *external.Resource[*Account, entry]) {
				d.edit(r)
				tc.edit(r)
			})
			e.try()
			require.True(t, e.object.Status.Account.Pending)
			d.lose = false
			e.edit(func(a *Account) { a.Spec.Quota++ })
			e.later(2 * time.Minute)
			reason := e.try()
			if strings.Contains(reason, "Creating") {
				e.later(2 * time.Minute)
				reason = e.try()
			}
			require.Contains(t, reason, "Succeeded", tc.reason)
			require.Len(t, d.byID, 1)
			require.Equal(t, e.object.Spec.Quota, d.byID["id-1"].Quota, tc.reason)
		})
	}
}

// TestTimeOfRepeatedCreation: a creation does not reach the API, and is repeated two minutes later. For how long the API may not show the
// thing is counted from the repetition.
func TestTimeOfRepeatedCreation(t *testing.T) {
	unreachable := errors.New("unreachable")
	for name, tc := range map[string]struct {
		reason        string
		identity      external.Identity
		grace         time.Duration
		before, after error // the errors of the repetition: before has no effect, after loses the answer
		deleted       bool  // the object is deleted while the API does not show the thing
	}{
		"NotShown":      {reason: "It is not created a second time.", identity: external.ByToken, grace: time.Minute},
		"Refused":       {reason: "What was refused had no effect, so the next try need not wait.", identity: external.ByToken, grace: time.Minute, before: external.Throttled(time.Second, errors.New("429"))},
		"Deleted":       {reason: "The API may be behind, so the thing is deleted in any case.", identity: external.ByKey, deleted: true},
		"DeletedAsLost": {reason: "The cleanup waits until the API shows the thing.", identity: external.ByKey, grace: time.Minute, after: errors.New("lost"), deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, tc.identity, func(r *external.Resource[*Account, entry]) {
				r.Grace, r.DeletesAtOnce = tc.grace, true
			})
			before, after, creations := unreachable, error(nil), 0
			e.api.fail = func(call string) (error, error) {
				if strings.HasPrefix(call, "create ") {
					creations++
					return before, after
				}
				return nil, nil
			}
			e.try()
			e.later(2 * time.Minute)
			before, after = tc.before, tc.after
			e.try()
			if before != nil {
				before = nil
				e.later(2 * time.Second) // the API asked for a second
				e.try()
			}
			require.Len(t, e.api.entries, 1, tc.reason)
			e.api.hidden, after, creations = true, nil, 0
			if tc.deleted {
				require.NoError(t, e.Delete(t.Context(), e.object))
			}
			e.try()
			e.api.hidden = false
			e.later(30 * time.Second)
			reason := e.try()
			require.Zero(t, creations, tc.reason)
			if tc.deleted {
				require.Empty(t, e.api.entries, tc.reason)
				return
			}
			require.Contains(t, reason, "Succeeded", tc.reason)
			require.Len(t, e.api.entries, 1)
		})
	}
}

// TestCheckpointFails: the write of the status before a creation fails, so the creation is not sent. The next try sends it at once.
func TestCheckpointFails(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		identity external.Identity
		repeated bool // an earlier creation has not reached the API
	}{
		"First":    {"It is known that nothing was created, though the API finds nothing by a key.", external.ByID, false},
		"Repeated": {"The time of the earlier try counts.", external.ByToken, true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, tc.identity, func(r *external.Resource[*Account, entry]) { r.Grace = time.Minute })
			writes, fails := 0, false
			e.Client = interceptor.NewClient(e.Client.(client.WithWatch), interceptor.Funcs{
				SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, p client.Patch, o ...client.SubResourcePatchOption) error {
					if writes++; fails && writes == 1 {
						return errors.New("no leader")
					}
					return c.SubResource(sub).Patch(ctx, obj, p, o...)
				},
			})
			e.restart()
			var unreachable error
			e.api.fail = func(call string) (before, after error) {
				if strings.HasPrefix(call, "create ") {
					return unreachable, nil
				}
				return nil, nil
			}
			if tc.repeated {
				unreachable = errors.New("unreachable")
				e.try()
				e.later(2 * time.Minute)
				unreachable = nil
			}
			writes, fails = 0, true
			require.Contains(t, e.try(), "no leader", tc.reason)
			require.Empty(t, e.api.entries)
			fails = false
			e.try()
			require.Len(t, e.api.entries, 1, tc.reason)
		})
	}
}

// TestUnsentCreations: an object has several keys, and all creations are recorded before the first is sent. The first one fails, so
// the others are not sent.
func TestUnsentCreations(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   []string // the keys in the record after the first pass
	}{
		"Throttled":  {"None of them had an effect.", external.Throttled(time.Second, errors.New("429")), nil},
		"Refused":    {"None of them had an effect.", external.Refused("NoQuota", errors.New("403")), nil},
		"LostAnswer": {"Only the first one may have had an effect.", errors.New("lost"), []string{"alice?"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &tagged{byID: map[string]entry{}}
			fail := tc.err
			e := newEnv(t, external.ByID, func(r *external.Resource[*Account, entry]) {
				several(r)
				d.edit(r)
				create := r.Create
				r.Create = func(ctx context.Context, c client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
					if fail != nil {
						return "", fail
					}
					return create(ctx, c, a, ref, desired)
				}
			})
			e.edit(func(a *Account) { a.Spec.Login = "alice,bob,carol" })
			e.try()
			require.Equal(t, tc.want, keysIn(e.object.Status.Account.Things), tc.reason)
			fail = nil
			e.later(time.Hour)
			reason := e.try()
			if tc.want != nil {
				require.Contains(t, reason, "CreationUnknown")
				require.Contains(t, reason, "alice")
				return
			}
			require.Contains(t, reason, "Succeeded", tc.reason)
			require.Equal(t, []string{"alice", "bob", "carol"}, keysIn(e.object.Status.Account.Things))
			require.Len(t, d.byID, 3, fmt.Sprint(d.byID))
		})
	}
}
