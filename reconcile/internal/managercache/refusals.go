package managercache

import (
	"context"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// Refusals is a channel that receives the first Forbidden answer to a list or watch. Make it with a capacity of one.
type Refusals chan error

// Observe returns a wrapper of an informer's ListerWatcher that reports a Forbidden answer. If the watch has worked before,
// a Forbidden answer is not reported, and the watch is retried, because somebody may be changing the roles.
func (r Refusals) Observe(lw toolscache.ListerWatcher) toolscache.ListerWatcher {
	inner := toolscache.ToListerWatcherWithContext(lw)
	var worked atomic.Bool
	report := func(err error) {
		if !apierrors.IsForbidden(err) || worked.Load() {
			return
		}
		select {
		case r <- err:
		default: // only the first refusal is reported
		}
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, options)
			report(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			w, err := inner.WatchWithContext(ctx, options)
			report(err)
			worked.CompareAndSwap(false, err == nil)
			if err != nil {
				return w, err
			}
			return newReleasedWatch(w), nil
		},
	}
}
