package reconcile

// WithReason gives an error the reason, in CamelCase, of its condition and its event. When it is tried
// again depends on the error, as it would without. Of a nil error it makes nil.
func WithReason(reason string, err error) error {
	if err == nil {
		return nil
	}
	return &reasonedError{reason: reason, err: err}
}

type reasonedError struct {
	reason string
	err    error
}

func (e *reasonedError) Error() string  { return e.err.Error() }
func (e *reasonedError) Unwrap() error  { return e.err }
func (e *reasonedError) Reason() string { return e.reason }
