package reconcile

// Halt keeps later steps from running in this pass. With an error, which may be that of
// [Wait], it is the step's outcome; with nil, the step has succeeded.
//
// What later steps report becomes Unknown, and so does Ready if one of them is not optional.
func Halt(err error) error { return &haltError{err} }

type haltError struct{ err error }

func (e *haltError) Error() string {
	if e.err == nil {
		return "nothing more to do"
	}
	return e.err.Error()
}

func (e *haltError) Unwrap() error { return e.err }
