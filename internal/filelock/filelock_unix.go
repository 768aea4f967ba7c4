//go:build unix

package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Try locks a file, and creates it if it does not exist. If the process dies, the kernel releases the lock. If the lock is held, Try returns
// [ErrHeld]. On a system other than Unix it returns [errors.ErrUnsupported].
func Try(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return func() { _ = file.Close() }, nil
}
