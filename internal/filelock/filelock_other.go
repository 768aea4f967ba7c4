//go:build !unix

package filelock

import "errors"

// Try returns [errors.ErrUnsupported].
func Try(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
