package managercache

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// endless is a watch that has a buffer and sends no events.
type endless struct {
	results chan apiwatch.Event
	buffer  []byte
}

func (w *endless) ResultChan() <-chan apiwatch.Event { return w.results }
func (w *endless) Stop()                             { close(w.results) }

// TestWatchIsReleased proves that a stopped watch drops its inner watch, even if the informer keeps the stopped
// watch.
func TestWatchIsReleased(t *testing.T) {
	released := make(chan bool, 1)
	observed := make(Refusals, 1).Observe(&toolscache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) { return nil, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
			w := &endless{results: make(chan apiwatch.Event, 1), buffer: make([]byte, 1<<20)}
			w.results <- apiwatch.Event{Type: apiwatch.Bookmark}
			runtime.AddCleanup(w, func(released chan bool) { released <- true }, released)
			return w, nil
		},
	})
	w, err := toolscache.ToListerWatcherWithContext(observed).WatchWithContext(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, apiwatch.Bookmark, (<-w.ResultChan()).Type)
	w.Stop()
	w.Stop()
	_, open := <-w.ResultChan()
	require.False(t, open)
	require.Eventually(t, func() bool {
		runtime.GC()
		return len(released) == 1
	}, time.Minute, time.Millisecond)
	runtime.KeepAlive(w)
}
