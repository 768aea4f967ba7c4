package controller

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
)

// fingerprints holds what the server has stored for the passwords when they were last known to be as specified. They never leave this
// process, and are empty when it starts.
type fingerprints struct {
	mu  sync.Mutex
	all map[owned]accounts.Fingerprint
}

type owned struct {
	by types.UID
	accounts.Account
}

// isChanged reports whether what the server has stored is another one than before.
func (f *fingerprints) isChanged(u *userv1alpha1.DatabaseUser, a accounts.Account, now accounts.Fingerprint) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	last, known := f.all[owned{u.UID, a}]
	return known && last != now
}

func (f *fingerprints) set(u *userv1alpha1.DatabaseUser, a accounts.Account, now accounts.Fingerprint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[owned]accounts.Fingerprint{}
	}
	f.all[owned{u.UID, a}] = now
}

// forget removes what is remembered of u.
func (f *fingerprints) forget(u *userv1alpha1.DatabaseUser) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.all, func(o owned, _ accounts.Fingerprint) bool { return o.by == u.UID })
}
