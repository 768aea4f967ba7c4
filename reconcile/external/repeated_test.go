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
