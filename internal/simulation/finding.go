package simulation

import (
	"errors"
	"slices"
)

// FindingKind is in which way an operator fails. Type FindingKind of package reconciletest has the same constants, and
// documents them.
type FindingKind string

// The kinds of findings.
const (
	DoesNotSurvive   FindingKind = "does not survive"
	DoesNotRest      FindingKind = "does not come to rest"
	DependsOnTiming  FindingKind = "depends on timing"
	BreaksConvention FindingKind = "breaks a convention"
)

// FindingKinds returns all kinds.
func FindingKinds() []FindingKind {
	return []FindingKind{DoesNotSurvive, DoesNotRest, DependsOnTiming, BreaksConvention}
}

// finding is an error with its kind.
type finding struct {
	kind FindingKind
	error
}

func (f finding) Unwrap() error { return f.error }

// kindOf returns the kind of an error of a run. Errors without a kind are of kind DoesNotSurvive.
func kindOf(err error) FindingKind {
	if f, ok := errors.AsType[finding](err); ok {
		return f.kind
	}
	return DoesNotSurvive
}

// rank orders findings in a report: those that depend on timing come after those that are certain, and those that only break
// a convention come last.
func (k FindingKind) rank() int {
	switch k {
	case DependsOnTiming:
		return 1
	case BreaksConvention:
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
