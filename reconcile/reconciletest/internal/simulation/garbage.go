package simulation

import (
	"os"
	"runtime/debug"
	"sync"
)

// garbagePercent is the target of the garbage collector while an exploration runs: see [debug.SetGCPercent]. A run allocates much and keeps
// little. With 200 in place of Go's 100, explorations need about a sixth less processor time, and at most 240 MB for the operators of this
// repository; with more, the memory grows faster than the time shrinks.
const garbagePercent = 200

// relaxed counts the explorations that run, since tests may explore in parallel.
var relaxed struct {
	mu           sync.Mutex
	explorations int
	before       int // the target of the rest of the test program
}

// collectLess makes the garbage collector run less often until restore is called. If the user has set GOGC, that counts.
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
