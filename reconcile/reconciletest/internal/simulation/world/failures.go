package world

import (
	"errors"
	"slices"
	"sync"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

// Failures are the errors of a run. The first one ends the run, and others may follow until it has ended.
type Failures struct {
	mu       sync.Locker // the run's lock, which guards what follows
	silent   []kinds.Finding
	all      []error
	Silenced map[kinds.Finding]bool // kinds of findings that were left out
}

// newFailures returns Failures without an error. lock is the run's lock. silent are the kinds of findings that are left out.
func newFailures(lock sync.Locker, silent []kinds.Finding) Failures {
	return Failures{mu: lock, silent: silent, Silenced: map[kinds.Finding]bool{}}
}

// Add notes an error of the operator or of the scenario. The first one ends the run, unless it is a finding of a kind that is
// left out.
func (f *Failures) Add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.AddLocked(err)
}

// AddLocked is like Add, for a caller that holds the lock.
func (f *Failures) AddLocked(err error) {
	if finding, ok := errors.AsType[failure.Finding](err); ok && f.leavesOut(finding.Kind) {
		return
	}
	f.all = append(f.all, err)
}

// Abort notes an error after which the run cannot go on. It is noted even if findings of its kind are left out.
func (f *Failures) Abort(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err)
}

// First returns the first error, nil if there is none.
func (f *Failures) First() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return nil
	}
	return f.all[0]
}

// Length returns how many errors there are.
func (f *Failures) Length() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

// Cut removes all errors but the first ones.
func (f *Failures) Cut(length int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = f.all[:length]
}

// LeavesOut reports whether findings of the kind are left out. If so, it notes that there was one, and the run goes on.
func (f *Failures) LeavesOut(kind kinds.Finding) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leavesOut(kind)
}

// leavesOut is like LeavesOut, for a caller that holds the lock.
func (f *Failures) leavesOut(kind kinds.Finding) bool {
	silent := slices.Contains(f.silent, kind)
	if silent {
		f.Silenced[kind] = true
	}
	return silent
}
