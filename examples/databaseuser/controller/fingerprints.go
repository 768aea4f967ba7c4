package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/examples/internal/accounts"
)

// fingerprints holds what the server has stored for the passwords when they were last known to be as specified. They never leave this
// process, and are empty when it starts.
type fingerprints struct{ byOwned sync.Map }

// owned is an account of a DatabaseUser.
type owned struct {
	by types.UID
	accounts.Account
}

// isChanged reports whether what the server has stored is another one than before.
func (f *fingerprints) isChanged(u *userv1alpha1.DatabaseUser, a accounts.Account, now accounts.Fingerprint) bool {
	last, known := f.byOwned.Load(owned{u.UID, a})
	return known && last != now
}

func (f *fingerprints) set(u *userv1alpha1.DatabaseUser, a accounts.Account, now accounts.Fingerprint) {
	f.byOwned.Store(owned{u.UID, a}, now)
}

// forget removes what is remembered of u.
func (f *fingerprints) forget(u *userv1alpha1.DatabaseUser) {
	for key := range f.byOwned.Range {
		if key.(owned).by == u.UID { //nolint:forcetypeassert // only these are stored
			f.byOwned.Delete(key)
		}
	}
}
