package reconciletest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// result is what came of a run.
type result struct {
	faults  []Fault
	struck  int // how many of the faults came to be
	err     error
	trace   *trace
	points  []point
	phases  []phase
	writes  map[madeKey]int
	made    map[madeKey]bool
	deleted map[madeKey]int
	ledger  *RequestLog
}

// keeps reports whether the operator makes an object in this run and never deletes it. Objects whose
// names the API server gives are not told apart.
func (r *result) keeps(key madeKey) bool { return r.made[key] && r.deleted[key] == 0 }

// play plays the scenario in a bubble of its own, with some faults.
func (s *Scenario) play(t *testing.T, faults []Fault, baseline *result) *result {
	var r *run
	var bubble string
	left := inBubble(t, func(*testing.T) {
		bubble = bubbleName()
		server, err := memoryserver.New(s.Scheme, s.serverOptions()...)
		if err != nil {
			r = &run{failures: []error{err}, trace: &trace{}}
			return
		}
		r = newRun(s, server, faults, baseline)
		r.play()
		time.Sleep(time.Minute) // for what ends at its next tick
	})
	if left && r.clean && r.failure() == nil {
		r.fail(fmt.Errorf("a goroutine is left when the process has ended: %s", goroutinesOf(bubble)))
	}
	return &result{
		faults: faults, struck: len(r.struck), err: r.failure(), trace: r.trace, points: r.points,
		phases: r.phases, writes: r.writes, made: r.made, deleted: r.deleted, ledger: r.ledger,
	}
}

// inBubble calls f in a bubble and reports whether goroutines were left in it. They stay for ever.
func inBubble(t *testing.T, f func(t *testing.T)) (left bool) {
	defer func() {
		if r := recover(); r != nil {
			if !strings.Contains(fmt.Sprint(r), "deadlock") {
				panic(r)
			}
			left = true
		}
	}()
	synctest.Test(t, f)
	return false
}

// bubbleName gives what stacks of the bubble's goroutines are marked with.
func bubbleName() string {
	var header [100]byte
	text := string(header[:runtime.Stack(header[:], false)])
	_, after, _ := strings.Cut(text, "synctest bubble ")
	number, _, _ := strings.Cut(after, "]")
	return "synctest bubble " + number + "]"
}

// goroutinesOf tells where the bubble's goroutines wait, and who started them.
func goroutinesOf(bubble string) string {
	stacks := make([]byte, 1<<20)
	var all []string
	count := map[string]int{}
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		header, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(header, bubble) {
			continue
		}
		_, waits, _ := strings.Cut(header, "[")
		waits, _, _ = strings.Cut(waits, " (durable)")
		_, by, _ := strings.Cut(frames, "created by ")
		by, at, _ := strings.Cut(by, "\n\t")
		by, _, _ = strings.Cut(by, " in goroutine")
		at, _, _ = strings.Cut(at, " +")
		one := fmt.Sprintf("%s started it at %s, and it waits: %s", by, at[strings.LastIndex(at, "/")+1:], waits)
		if count[one]++; count[one] == 1 {
			all = append(all, one)
		}
	}
	for i, one := range all {
		if n := count[one]; n > 1 {
			all[i] = fmt.Sprintf("%s (%d of them)", one, n)
		}
	}
	return strings.Join(all, "; ")
}
