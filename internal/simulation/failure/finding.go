// Package failure has the errors of a run: a [Finding] says in which way the operator fails, and [Recover] makes an error of a
// panic in a function of the test's author.
package failure

import (
	"errors"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// Finding is an error with its kind.
type Finding struct {
	Kind kinds.Finding
	Err  error
}

// Error returns the text of the error.
func (f Finding) Error() string { return f.Err.Error() }

// Unwrap returns the error without its kind.
func (f Finding) Unwrap() error { return f.Err }

// KindOf returns the kind of an error of a run. Errors without a kind are of kind DoesNotSurvive.
func KindOf(err error) kinds.Finding {
	if f, ok := errors.AsType[Finding](err); ok {
		return f.Kind
	}
	return kinds.DoesNotSurvive
}
