package reconcile

// KeepConditions keeps a step's outcome, be it nil, out of the conditions: they stay as they are, since
// somebody else tells of the object. An error is logged and retried as ever.
func KeepConditions(err error) error { return &unshownError{err} }

type unshownError struct{ err error }

func (e *unshownError) Error() string {
	if e.err == nil {
		return "nothing to show"
	}
	return e.err.Error()
}

func (e *unshownError) Unwrap() error { return e.err }
