package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
)

// checked remembers when an account was last found, or made, as it should be. It is empty after a start: then each is
// looked at once.
type checked struct {
	mu    sync.Mutex
	byUID map[types.UID]check
}

type check struct {
	generation int64
	version    string // of the password
	due        time.Time
	// fingerprints are what the server stored for the password, by host. They never leave this process.
	fingerprints map[string]accounts.Fingerprint
}

func (c *checked) get(u *userv1alpha1.DatabaseUser) check {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byUID[u.UID]
}

func (c *checked) set(u *userv1alpha1.DatabaseUser, is check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUID == nil {
		c.byUID = map[types.UID]check{}
	}
	c.byUID[u.UID] = is
}

func (c *checked) forget(u *userv1alpha1.DatabaseUser) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byUID, u.UID)
}
