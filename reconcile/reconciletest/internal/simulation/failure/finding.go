// Package failure has the errors of a run: a [Finding] says how the operator fails, and [Recover] turns a panic in a function of the test's
// author into an error.
package failure

import (
	"errors"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// Finding is an error with the kind of the finding.
type Finding struct {
	Kind   kinds.Finding
	Err    error
	Cause  string // see CauseOf; "": CauseOf derives it from the error
	Asked  bool   // see IsAsked
	Object string // the kind and name of the object that is wrong; "": it is not known
}

// Error returns the text of the error.
func (f Finding) Error() string { return f.Err.Error() }

// Unwrap returns the error without its kind.
func (f Finding) Unwrap() error { return f.Err }

// StartError is an error of the scenario's Start.
type StartError struct{ Err error }

// Error returns the text of the error.
func (e StartError) Error() string { return "start: " + e.Err.Error() }

// Unwrap returns the error of Start.
func (e StartError) Unwrap() error { return e.Err }

// KindOf returns the kind of an error of a run. If the error has no kind, it returns DoesNotSurvive.
func KindOf(err error) kinds.Finding {
	if f, ok := errors.AsType[Finding](err); ok {
		return f.Kind
	}
	return kinds.DoesNotSurvive
}

// CauseOf returns the probable cause of an error of a run: the changed field and the verb, without numbers and random names. Two errors
// with the same cause probably have the same reason.
func CauseOf(err error) string {
	if f, ok := errors.AsType[Finding](err); ok && f.Cause != "" {
		return f.Cause
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return state.Shape(line)
}

// IsAsked reports whether the error says that a check of the scenario has failed. Then it is certain which of two runs is wrong.
func IsAsked(err error) bool {
	f, ok := errors.AsType[Finding](err)
	return ok && f.Asked
}

// ObjectOf returns the object that is wrong according to an error of a run, "" if the error names none.
func ObjectOf(err error) string {
	f, _ := errors.AsType[Finding](err)
	return f.Object
}
