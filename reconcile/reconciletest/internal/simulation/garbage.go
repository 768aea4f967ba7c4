package simulation

import (
	"os"
	"runtime/debug"
	"sync"
)

// garbagePercent is the target of the garbage collector while an exploration runs: see [debug.SetGCPercent]. A run allocates much and keeps
// little. With 200 instead of Go's 100, explorations need about a sixth less processor time, and at most 240 MB for the operators of this
// repository. Larger targets need much more memory and save little time.
const garbagePercent = 200

// relaxed counts the explorations that run at the moment. Tests may explore in parallel.
var relaxed struct {
	mu           sync.Mutex
	explorations int
	before       int // the target before the first of them began
}

// collectLess makes the garbage collector run less often until restore is called. If the user has set GOGC, it does nothing.
func collectLess() (restore func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	relaxed.mu.Lock()
	defer relaxed.mu.Unlock()
	if relaxed.explorations++; relaxed.explorations == 1 {
		relaxed.before = debug.SetGCPercent(garbagePercent)
	}
	return func() {
		relaxed.mu.Lock()
		defer relaxed.mu.Unlock()
		if relaxed.explorations--; relaxed.explorations == 0 {
			debug.SetGCPercent(relaxed.before)
		}
	}
}
