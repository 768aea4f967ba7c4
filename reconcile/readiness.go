package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
)

// syncCheckTimeout is how long a readiness check waits for the caches. The timeout of a probe is a second by default.
const syncCheckTimeout = 200 * time.Millisecond

// cachesSynced is the readiness check of the manager. It returns an error until all controllers have ended their warm-up and
// all informers that have been started have synced. A controller without EnableWarmup ends its warm-up at once.
func (m *manager) cachesSynced(request *http.Request) error {
	if n := m.warming.Load(); n > 0 {
		return fmt.Errorf("%d controllers wait for their caches", n)
	}
	ctx, cancel := context.WithTimeout(request.Context(), syncCheckTimeout)
	defer cancel()
	if !m.cache.WaitForCacheSync(ctx) {
		return errors.New("the caches have not synced")
	}
	return nil
}

// Add adds a runnable. If it is a controller, the manager is not ready before its warm-up has ended.
func (m *manager) Add(runnable ctrlmanager.Runnable) error {
	c, ok := runnable.(warmupRunnable)
	if !ok {
		return m.Manager.Add(runnable)
	}
	m.warming.Add(1)
	return m.Manager.Add(&warmingController{warmupRunnable: c, manager: m})
}

// warmupRunnable has the methods of a controller that controller-runtime's manager looks for.
type warmupRunnable interface {
	ctrlmanager.Runnable
	ctrlmanager.LeaderElectionRunnable
	Warmup(ctx context.Context) error
}

// warmingController is a controller that reports the end of its warm-up to the manager. The manager calls Warmup once.
type warmingController struct {
	warmupRunnable
	manager *manager
}

// Warmup starts the controller's watches and returns when their caches have synced, if EnableWarmup is set.
func (c *warmingController) Warmup(ctx context.Context) error {
	err := c.warmupRunnable.Warmup(ctx)
	if err == nil {
		c.manager.warming.Add(-1)
	}
	return err
}
