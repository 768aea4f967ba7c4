//go:build !race

package external_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/opblocks/opblocks/reconcile/external"
	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// table is a fake API that keeps its entries when the operator's process ends.
type table struct {
	identity external.Identity
	entries  map[string]entry // by login with ByKey, otherwise by ID
	created  int
}

// State returns the entries, which are compared with the entries of a run without faults. So the test finds an entry
// that is left behind or was created twice.
func (d *table) State() any {
	if d.identity == external.ByKey {
		return d.entries
	}
	all := slices.Collect(maps.Values(d.entries)) // IDs and tokens differ between two runs
	for i := range all {
		all[i].Token = ""
	}
	slices.SortFunc(all, func(a, b entry) int { return len(a.Login) - len(b.Login) })
	return all
}

// tableClient is the client of the table in one process. Faults occur at its calls.
type tableClient struct {
	*table
	process *reconciletest.Process
}

// key returns the key of the entry that a reference names, or "" if the API cannot find the entry.
func (d *table) key(ref external.Reference) string {
	if d.identity == external.ByKey || ref.ID != "" {
		return ref.String()
	}
	for id, e := range d.entries {
		if e.Token != "" && e.Token == ref.Token {
			return id
		}
	}
	return ""
}

func (c tableClient) get(ctx context.Context, ref external.Reference) (found entry, err error) {
	err = c.process.Query(ctx, "get "+ref.Key, func() error {
		var exists bool
		id := c.key(ref)
		if found, exists = c.entries[id]; !exists {
			return external.ErrNotFound
		}
		found.ID = id
		return nil
	})
	return found, err
}

func (c tableClient) create(ctx context.Context, owner string, ref external.Reference, quota int) (id string, err error) {
	err = c.process.Effect(ctx, "create "+ref.Key, func() error {
		key := ref.Key
		if key := c.key(ref); c.identity == external.ByToken && key != "" {
			id = key
			return nil
		}
		if c.identity != external.ByKey {
			c.created++
			id = fmt.Sprintf("id-%d", c.created)
			key = id
		} else if _, exists := c.entries[key]; exists {
			return external.ErrExists
		}
		c.entries[key] = entry{Login: ref.Key, Owner: owner, Token: ref.Token, Quota: quota}
		return nil
	})
	return id, err
}

func (c tableClient) update(ctx context.Context, ref external.Reference, quota int) error {
	return c.process.Effect(ctx, "update "+ref.Key, func() error {
		e, exists := c.entries[c.key(ref)]
		if !exists {
			return external.ErrNotFound
		}
		e.Quota = quota
		c.entries[c.key(ref)] = e
		return nil
	})
}

func (c tableClient) remove(ctx context.Context, ref external.Reference) error {
	return c.process.Effect(ctx, "remove "+ref.Key, func() error { delete(c.entries, c.key(ref)); return nil })
}
