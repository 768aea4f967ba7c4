package controller

import (
	"context"

	"github.com/opblocks/opblocks/examples/databaseuser/accounts"
	"github.com/opblocks/opblocks/reconcile"
)

// checkpointed is a database that calls [reconcile.Checkpoint] before each change. By then the status is written, which
// records what is about to be created, and the DatabaseUser is confirmed to be as the cache shows it.
type checkpointed struct{ accounts.Database }

func (d checkpointed) Create(ctx context.Context, a accounts.Account, p accounts.Password, s accounts.Settings) error {
	return checkpoint(ctx, func() error { return d.Database.Create(ctx, a, p, s) })
}

func (d checkpointed) SetPassword(ctx context.Context, a accounts.Account, p accounts.Password) error {
	return checkpoint(ctx, func() error { return d.Database.SetPassword(ctx, a, p) })
}

func (d checkpointed) SetSettings(ctx context.Context, a accounts.Account, s accounts.Settings) error {
	return checkpoint(ctx, func() error { return d.Database.SetSettings(ctx, a, s) })
}

func (d checkpointed) Drop(ctx context.Context, a accounts.Account) error {
	return checkpoint(ctx, func() error { return d.Database.Drop(ctx, a) })
}

func (d checkpointed) Grant(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return checkpoint(ctx, func() error { return d.Database.Grant(ctx, a, g) })
}

func (d checkpointed) Revoke(ctx context.Context, a accounts.Account, g accounts.Grant) error {
	return checkpoint(ctx, func() error { return d.Database.Revoke(ctx, a, g) })
}

func checkpoint(ctx context.Context, change func() error) error {
	if err := reconcile.Checkpoint(ctx); err != nil {
		return err
	}
	return change()
}
