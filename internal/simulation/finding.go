package simulation

import (
	"errors"
	"slices"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// finding is an error with its kind.
type finding struct {
	kind kinds.Finding
	error
}

func (f finding) Unwrap() error { return f.error }

// kindOf returns the kind of an error of a run. Errors without a kind are of kind DoesNotSurvive.
func kindOf(err error) kinds.Finding {
	if f, ok := errors.AsType[finding](err); ok {
		return f.kind
	}
	return kinds.DoesNotSurvive
}

// rankOf orders findings in a report: those that depend on timing come after those that are certain, and those that only break
// a convention come last.
func rankOf(kind kinds.Finding) int {
	switch kind {
	case kinds.DependsOnTiming:
		return 1
	case kinds.BreaksConvention:
		return 2
	}
	return 0
}

// noteNoOps notes the writes that a pass sent although it had nothing to do, and that changed nothing. They do not end the
// run. They are reported once, for all phases.
func (r *Run) noteNoOps(begun int) {
	if r.references != nil {
		return // only the run without faults reports them
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.log.probesSince(begun) {
		if !c.IsWrite() || c.External != "" || c.Changed || c.Err != nil || c.dryRun || c.Fault != "" {
			continue
		}
		if name := c.String(); !slices.Contains(r.noOps, name) {
			r.noOps = append(r.noOps, name)
		}
	}
}
