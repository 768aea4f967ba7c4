package programs

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// lock waits until no other process holds the lock file. The kernel drops the lock when its holder dies.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	waiting := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errors.Join(err, file.Close())
		}
		if !waiting {
			waiting = true
			defer progress("waiting for another process that builds the control plane's programs", time.Now())()
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		}
	}
}
