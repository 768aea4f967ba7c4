package reconcile

import (
	"context"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// afterSteps registers a function as ownedresources does, which reaches the pass through the context alone.
func afterSteps(ctx context.Context, do func(ctx context.Context) error) error {
	passcontext.FromContext(ctx).AfterSteps(do)
	return nil
}
