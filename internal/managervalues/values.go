// Package managervalues keeps values that all reconcilers of one manager share, because a controller-runtime manager itself cannot keep
// them.
package managervalues

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Values has one value for each manager of this process, until the manager ends. It is safe for concurrent use.
type Values[T any] struct{ byCache sync.Map } // cache.Cache → T

// Of returns the value of a manager. If there is none yet, Of creates it by calling create. If two calls create one at the same time, the
// first value counts.
func (v *Values[T]) Of(mgr ctrl.Manager, create func() (T, error)) (value T, err error) {
	if known, ok := v.byCache.Load(mgr.GetCache()); ok {
		return known.(T), nil
	}
	if value, err = create(); err != nil {
		return value, err
	}
	if known, loaded := v.byCache.LoadOrStore(mgr.GetCache(), value); loaded {
		return known.(T), nil
	}
	if err := mgr.Add(&runnable[T]{v, mgr.GetCache(), value}); err != nil {
		v.byCache.Delete(mgr.GetCache())
		return value, err
	}
	return value, nil
}

// Has reports whether a manager has a value.
func (v *Values[T]) Has(mgr ctrl.Manager) bool {
	_, has := v.byCache.Load(mgr.GetCache())
	return has
}

// runnable runs a manager's value if the value has a method Start, and drops it when the manager ends. It does not wait for the leader
// election, because a controller may start its sources before that.
type runnable[T any] struct {
	values *Values[T]
	cache  cache.Cache
	value  T
}

var _ manager.LeaderElectionRunnable = &runnable[any]{}

func (r *runnable[T]) NeedLeaderElection() bool { return false }

// ReadsOnly tells a manager that only plans that it may run this runnable, because it writes nothing: see package upgrade.
func (r *runnable[T]) ReadsOnly() {}

func (r *runnable[T]) Start(ctx context.Context) error {
	defer r.values.byCache.Delete(r.cache)
	if value, ok := any(r.value).(manager.Runnable); ok {
		return value.Start(ctx)
	}
	<-ctx.Done()
	return nil
}
