package simulation

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
)

// memoryOfRun is how much memory is set aside for a run. The runs of this repository's operators hold 1 to 3 MiB each:
// all versions of all objects, the bodies of all requests, and the trace. The rest is for larger operators, and for what
// the garbage collector has not freed yet: a run allocates 20 to 60 MiB in all.
const memoryOfRun = 32 << 20

// slots returns a channel with room for the runs that may happen at a time in the test program, however many tests
// explore in parallel.
var slots = sync.OnceValue(func() chan struct{} {
	return make(chan struct{}, concurrency(runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)))
})

// concurrency returns how many runs may happen at a time: one for each processor, but no more than the memory limit of the
// Go runtime (GOMEMLIMIT) has room for, and at least one. Without a limit it is math.MaxInt64.
func concurrency(processors int, memoryLimit int64) int {
	if memoryLimit == math.MaxInt64 {
		return processors
	}
	return max(1, min(processors, int(memoryLimit/memoryOfRun)))
}

// acquireSlot waits until a run may begin. The run calls release when it has ended.
func acquireSlot() (release func()) {
	slots() <- struct{}{}
	return func() { <-slots() }
}

// inSlot does a run when there is a slot.
func inSlot(run func()) {
	defer acquireSlot()()
	run()
}
