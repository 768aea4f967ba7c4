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
	Notes      []string        // what is to be said first, of a run without faults
	NoOps      []string        // writes of passes that had nothing to do
	Refused    []RefusedCreate // only a run without faults has some
	// Unsuccessful are the parts of a run without faults that did not succeed. The first is Err, unless such findings are left out.
	Unsuccessful []error

	Left       []bubble.Goroutines // the goroutines that are left, of a run without faults
	Silenced   map[kinds.Finding]bool
	Past       []string // writes by processes whose cache was behind, since they began with an old one
	Moments    Moments
	Seed       Seed
	Server     *memoryserver.Server
	Leading    int    // how many of the first actions need nothing that the operator does; see LeadingActions of package run
	Hung       bool   // the run hangs, and its goroutines go on
	Unfinished string // where the run was when the deadline ended it; "": it did not
}

// Failed returns the result of a run that could not be started.
func Failed(err error) *Result {
	return &Result{Err: err, Trace: &trace.Trace{}, Silenced: map[kinds.Finding]bool{}}
}

// PhaseAt returns the phase of that index, nil if the run ended before, or the operator did not run yet.
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
	Revision   int64       // the server's revision then
	External   string      // what was outside of the cluster then
	Orphans    []string    // a line for each thing outside of the cluster whose object did not exist any more then
	Operations Operations
	Later      []state.State // the states that the operator would reach by itself before the next action
}

// Seed determines the random values of a run, from which package ownedresources generates passwords. A run with faults has the
// seed of the run without faults, so both have the same passwords until a fault makes a difference. Each run without faults has
// a seed of its own: comparing two of them finds what depends on chance.
type Seed [32]byte

// Moments are when the actions of a run began and ended, by the index of their phase. All runs begin at the same virtual time. A run with
// faults follows the moments of the run without faults. If it is early, it lets time pass before an action, and its waits end at the same
// moment as without faults. Otherwise it would wake at other times of the day, and schedules would differ.
type Moments map[int]Moment

// Moment is when an action began and ended.
type Moment struct {
	Begun time.Time
	Over  time.Time // the end of a wait; zero for other actions
}

// RefusedCreate is a create that the API server refused, since the object exists, and that the operator took for a success.
type RefusedCreate struct {
	Request string
	Fields  []string // the paths at which the object differs from what was sent
}
