package calls

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The metrics must not keep the state of a step that the program does not use any more, such as a step of a manager
// that has ended.
func TestMetricsForgetSteps(t *testing.T) {
	c := newStateCollector()
	kept := &Calls{now: time.Now, name: "kept"}
	c.add(kept)
	added := make(chan int)
	go func() { // in a goroutine, so that afterwards no stack refers to the step
		gone := &Calls{now: time.Now, name: "gone"}
		gone.SetKind("Account")
		c.add(gone)
		added <- len(c.all())
	}()
	require.Equal(t, 1, <-added, "a step without a pass has no series")
	kept.SetKind("Account")
	for range 3 {
		runtime.GC()
	}
	all := c.all()
	require.Len(t, all, 1)
	require.Contains(t, all, [2]string{"Account", "kept"})
	runtime.KeepAlive(kept)
}
