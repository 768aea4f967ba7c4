package reconcile

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewManager is controller-runtime's, whose Start ends with one sentence where a permission to list
// or watch is missing. Otherwise it would wait for its cache for ever.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	m := &manager{refused: make(chan error, 1)}
	next := options.Cache.DefaultWatchErrorHandler
	if next == nil {
		next = toolscache.DefaultWatchErrorHandler
	}
	options.Cache.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
		// One that has worked before is retried: somebody may be at the roles just now.
		if apierrors.IsForbidden(err) && r.LastSyncResourceVersion() == "" {
			select {
			case m.refused <- err:
			default: // the first one is enough
			}
			return
		}
		next(ctx, r, err)
	}
	var err error
	m.Manager, err = ctrl.NewManager(config, options)
	return m, err
}

type manager struct {
	ctrl.Manager
	refused chan error
}

func (m *manager) Start(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan error, 1)
	go func() { done <- m.Manager.Start(ctx) }()
	select {
	case err := <-done:
		return err
	case refused := <-m.refused:
		stop(refused)
		<-done //nolint:errcheck // it ends because it was told to
		return fmt.Errorf("the cache cannot start: %w: add the permission to the operator's role", refused)
	}
}
