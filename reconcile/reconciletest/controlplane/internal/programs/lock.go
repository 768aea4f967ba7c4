package programs

import (
	"context"
	"errors"
	"time"

	"github.com/opblocks/opblocks/internal/filelock"
)

// lock locks a file. If another process holds the lock, it waits. If a process dies, the kernel releases its lock.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	retry := time.NewTicker(200 * time.Millisecond)
	defer retry.Stop()
	waiting := false
	for {
		unlock, err := filelock.Try(path)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return nil, errors.New("a control plane needs Linux or macOS; on Windows use WSL")
		case !errors.Is(err, filelock.ErrHeld):
			return unlock, err
		case !waiting:
			waiting = true
			defer progress(func() string { return "waiting for another process to build the control plane's programs" }, time.Now())()
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
