// Package failure has the errors of a run: a [Finding] says in which way the operator fails, and [Recover] makes an error of a
// panic in a function of the test's author.
package failure

import (
	"errors"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// Finding is an error with its kind.
type Finding struct {
	Kind   kinds.Finding
	Err    error
	Cause  string // see CauseOf; "": it follows from the error
	Asked  bool   // see IsAsked
	Object string // the kind and name of the object that is wrong; "": none is known
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

// KindOf returns the kind of an error of a run. Errors without a kind are of kind DoesNotSurvive.
func KindOf(err error) kinds.Finding {
	if f, ok := errors.AsType[Finding](err); ok {
		return f.Kind
	}
	return kinds.DoesNotSurvive
}

// CauseOf returns the probable cause of an error of a run: the changed field and the verb, without numbers and without names made by
// chance. Two errors with the same text probably have the same cause.
func CauseOf(err error) string {
	if f, ok := errors.AsType[Finding](err); ok && f.Cause != "" {
		return f.Cause
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return state.Shape(line)
}

// IsAsked reports whether the error says that something that the scenario asks for is not true. Then it is certain which of two runs is
// wrong.
func IsAsked(err error) bool {
	f, ok := errors.AsType[Finding](err)
	return ok && f.Asked
}

// ObjectOf returns the object that an error of a run calls wrong, "" if the error names none.
func ObjectOf(err error) string {
	f, _ := errors.AsType[Finding](err)
	return f.Object
}
