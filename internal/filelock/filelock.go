// Package filelock locks files between processes.
package filelock

import "errors"

// ErrHeld is the error if another process, or another call in this one, holds the lock.
var ErrHeld = errors.New("another process holds the lock")
