package simulation

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// memoryOfRun is how much memory is set aside for a run. A run of this repository's operators holds 1 to 3 MiB: all versions of all
// objects, the bodies of all requests, and the trace. The rest is for larger operators, and for what the garbage collector has not freed
// yet: a run allocates 20 to 60 MiB in all.
const memoryOfRun = 32 << 20

// slots returns a channel whose capacity is the number of runs that may happen at a time in the test program, even if several tests explore
// in parallel.
var slots = sync.OnceValue(func() chan struct{} {
	return make(chan struct{}, concurrency(runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)))
})

// concurrency returns how many runs may happen at a time: one for each processor, but only as many as fit into the memory limit of the Go
// runtime (GOMEMLIMIT), and at least one. A memoryLimit of math.MaxInt64 means no limit.
func concurrency(processors int, memoryLimit int64) int {
	if memoryLimit == math.MaxInt64 {
		return processors
	}
	return max(1, min(processors, int(memoryLimit/memoryOfRun)))
}

// acquireSlot waits until a run may begin. The caller calls release when the run has ended.
func acquireSlot() (release func()) {
	slots() <- struct{}{}
	return func() { <-slots() }
}

// inSlot waits until a run may begin, and does it.
func inSlot(run func()) {
	defer acquireSlot()()
	run()
}
