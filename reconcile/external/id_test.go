package external_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/external"
)

// TestRecordsTheID: the creations have not returned the IDs of the things, and the step finds the IDs out later.
func TestRecordsTheID(t *testing.T) {
	id := func(e entry) string { return e.ID }
	adopt := func(*Account, entry) error { return nil }
	for name, tc := range map[string]struct {
		reason   string
		identity external.Identity
		existing bool
		edit     func(*external.Resource[*Account, entry])
		want     string
	}{
		"lost answer": {"the thing is found by its token", external.ByToken, false, func(r *external.Resource[*Account, entry]) { r.ID = id }, "id-1"},
		"taken over":  {"nobody has created it here", external.ByKey, true, func(r *external.Resource[*Account, entry]) { r.ID, r.Adopt = id, adopt }, "id-1"},
		"not asked":   {"the field is optional", external.ByToken, false, func(*external.Resource[*Account, entry]) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			byID := map[string]entry{}
			if tc.existing {
				byID["id-1"] = entry{ID: "id-1", Login: "alice", Quota: 1}
			}
			e := newEnv(t, tc.identity, func(r *external.Resource[*Account, entry]) {
				r.Observe = func(_ context.Context, _ client.Client, _ *Account, ref external.Reference) (entry, error) {
					for _, found := range byID {
						if found.ID == ref.ID || ref.ID == "" && (found.Token == ref.Token || found.Login == ref.Key) {
							return found, nil
						}
					}
					return entry{}, external.ErrNotFound
				}
				r.Create = func(_ context.Context, _ client.Client, a *Account, ref external.Reference, desired entry) (string, error) {
					byID["id-1"] = entry{ID: "id-1", Login: ref.Key, Owner: a.Namespace + "/" + a.Name, Token: ref.Token, Quota: desired.Quota}
					return "", errors.New("the answer is lost")
				}
				tc.edit(r)
			})
			for range 2 {
				_, _ = e.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: e.name()})
			}
			require.NoError(t, e.Get(t.Context(), e.name(), e.object))
			require.Equal(t, tc.want, e.object.Status.Account.ID, tc.reason)
			require.False(t, e.object.Status.Account.Pending)
			require.Len(t, byID, 1, "it is not created again")
		})
	}
}
