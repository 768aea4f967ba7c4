// Package result has what a run led to: a [Result], with a [Phase] for each action. [References] are the results without
// faults, with which the others are compared.
package result

import (
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/bubble"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// Result is the result of a run.
type Result struct {
	Faults     []plan.Fault
	Injected   int // how many of the faults were injected
	Err        error
	Trace      *trace.Trace
	Points     []plan.Point
	Phases     []Phase
	Operations Operations
	Rights     map[request.Right]string
	Notes      []string        // lines that a report begins with; only a run without faults has some
	NoOps      []string        // writes of passes that had nothing to do
	Refused    []RefusedCreate // only a run without faults has some
	// Unsuccessful are errors about steps and passes of a run without faults that did not succeed. The first is Err, unless such findings
	// are left out.
	Unsuccessful []error

	Left       []bubble.Goroutines // the goroutines that are left at the end of a run without faults
	Silenced   map[kinds.Finding]bool
	Past       []string // writes of processes that began with an old cache, while the cache was behind
	Moments    Moments
	Seed       Seed
	Server     *memoryserver.Server
	Leading    int    // how many of the first actions need nothing that the operator does: see LeadingActions of package run
	Hung       bool   // the run hangs, and its goroutines go on
	Unfinished string // where the run was when the deadline ended it; "": the deadline did not end it
}

// Failed returns the result of a run that could not be started.
func Failed(err error) *Result {
	return &Result{Err: err, Trace: &trace.Trace{}, Silenced: map[kinds.Finding]bool{}}
}

// PhaseAt returns the phase with that index. It returns nil if the run ended before, or if the operator had not started yet.
func (r *Result) PhaseAt(i int) *Phase {
	if i >= len(r.Phases) || r.Phases[i].State == nil {
		return nil
	}
	return &r.Phases[i]
}

// Phase is the result of an action: what existed when the operator was quiet after it.
type Phase struct {
	Name       string
	State      state.State // nil: the operator did not become quiet between this action and the next one
	Revision   int64       // the server's revision at that time
	External   string      // what was outside of the cluster at that time
	Orphans    []string    // a line for each thing outside of the cluster whose object was gone at that time
	Operations Operations
	Later      []state.State // the states that the operator would reach before the next action if the user waited
}

// Seed determines the random values of a run, from which package ownedresources generates passwords. A run with faults has the seed of the
// run without faults, so both have the same passwords until a fault makes a difference. The runs without faults have different seeds, so
// that a comparison of two shows which values are random.
type Seed [32]byte

// Moments are the times at which the actions of a run began and ended, by the index of their phase. All runs begin at the same virtual
// time. A run with faults follows the times of the run without faults: if it is early, it waits before an action, and its waits end at the
// same time as without faults. Otherwise schedules would be due at other actions.
type Moments map[int]Moment

// Moment is the time at which an action began and ended.
type Moment struct {
	Begun time.Time
	Over  time.Time // the end of a wait; zero for other actions
}

// RefusedCreate is the creation of an object that the API server refused because the object exists, and that the operator treated as a
// success.
type RefusedCreate struct {
	Request string
	Fields  []string // the paths at which the object differs from what was sent
}
