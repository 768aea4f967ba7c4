package reconcile

import "errors"

// Reasoner is an error that brings the reason of a condition, in CamelCase.
type Reasoner interface {
	error
	Reason() string
}

// Stalled says that the step cannot succeed until somebody changes something, for a reason in
// CamelCase, or "" for the error's own ([Reasoner]): the object is shown as Stalled and tried again
// in 10 minutes, or on an event. Of a nil error it makes nil, so that it can wrap a check.
func Stalled(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{reason: reason, err: err}
}

type terminalError struct {
	reason string
	err    error
}

func (e *terminalError) Error() string { return e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

func (e *terminalError) Reason() string {
	if reasoned, ok := errors.AsType[Reasoner](e.err); ok && e.reason == "" {
		return reasoned.Reason()
	}
	return e.reason
}
