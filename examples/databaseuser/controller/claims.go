package controller

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
)

// claims decide between passes over several DatabaseUsers that run at the same time. Such a pass sees the others as the cache shows
// them: it may lag behind what this process has written. A DatabaseUser holds each account from the beginning of the pass that
// acquires it until its status does not record the account any more. No two hold the same account.
type claims struct {
	mu      sync.Mutex
	holders map[accounts.Account]holder
	purgeAt int // the number of accounts at which the accounts of holders that are gone are removed
}

// holder is the DatabaseUser that holds an account.
type holder struct {
	types.NamespacedName
	uid types.UID
}

const minPurgeAt = 64

// take makes u hold the accounts, all of them or none. If another DatabaseUser holds one of them, take returns its name. If u
// acquires an account, it is enough that the other one holds any account of the user name. A holder for which remains returns false
// holds nothing any more.
func (c *claims) take(u *userv1alpha1.DatabaseUser, want []accounts.Account, acquires bool, remains func(holder) bool) *types.NamespacedName {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.holders) >= max(c.purgeAt, minPurgeAt) {
		maps.DeleteFunc(c.holders, func(_ accounts.Account, h holder) bool { return !remains(h) })
		c.purgeAt = 2 * len(c.holders)
	}
	for w, h := range c.holders {
		isRival := h.uid != u.UID && w.User == u.Spec.User && (acquires || slices.Contains(want, w))
		if isRival && remains(h) {
			return &h.NamespacedName
		}
	}
	if c.holders == nil {
		c.holders = map[accounts.Account]holder{}
	}
	for _, w := range want {
		c.holders[w] = holder{client.ObjectKeyFromObject(u), u.UID}
	}
	return nil
}

// keep removes the accounts that u holds and that are not in all. It adds none.
func (c *claims) keep(u *userv1alpha1.DatabaseUser, all []accounts.Account) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.holders, func(w accounts.Account, h holder) bool { return h.uid == u.UID && !slices.Contains(all, w) })
}

// remains returns a function that reports whether a holder still exists and is served by this operator. The cache showed the
// holder before, so if it does not now, the holder is gone.
func (a *account) remains(ctx context.Context, r client.Reader) func(holder) bool {
	return func(h holder) bool {
		var u userv1alpha1.DatabaseUser
		err := r.Get(ctx, h.NamespacedName, &u)
		return client.IgnoreNotFound(err) != nil || err == nil && u.UID == h.uid && a.Serves(&u)
	}
}
