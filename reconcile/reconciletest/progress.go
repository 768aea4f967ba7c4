package reconciletest

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// These are the times at which progress is printed.
const (
	firstProgress   = 10 * time.Second // the delay of the first line without -v; with -v there is none
	progressEvery   = 10 * time.Second
	verboseProgress = 5 * time.Second // with -v, instead of progressEvery
)

// newProgress returns the printer of an exploration's progress. It prints to the standard error: what a test logs without -v
// is held back until the test has ended.
func newProgress() *simulation.Progress {
	if testing.Verbose() {
		return &simulation.Progress{Output: os.Stderr, Every: verboseProgress}
	}
	return &simulation.Progress{Output: os.Stderr, First: firstProgress, Every: progressEvery}
}

// isSampled reports whether not all single faults were tried.
func (r *Report) isSampled() bool { return r.Seed > 0 && r.Singles > r.done }

// leftOut returns how many runs the budget left out, as the end of a sentence.
func (r *Report) leftOut() string {
	if r.budget == 0 {
		return ""
	}
	return fmt.Sprintf("; %s left out, since the budget of %s was used up", text.Plural(r.Late, "run"), r.budget)
}
