// Package buildfolder has the folders in which the tests build programs. They have the same path in each run, because the command go
// compiles a package again if its folder has another path, and links a program again if the last one is gone.
package buildfolder

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/opblocks/opblocks/internal/filelock"
)

// Open returns the folder of this name in the user's cache, with what was left in it, for this caller alone until release is called or
// the process ends. If another caller has the folder, or the system has no locks, Open returns a temporary folder, which release removes. If
// the user's cache is not known, or cannot be written, Open returns an error.
func Open(name string) (folder string, release func(), err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", nil, err
	}
	folder = filepath.Join(cache, "opblocks", "tests", name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", nil, err
	}
	release, err = filelock.Try(folder + ".lock")
	if !errors.Is(err, filelock.ErrHeld) && !errors.Is(err, errors.ErrUnsupported) {
		return folder, release, err
	}
	folder, err = os.MkdirTemp("", name)
	return folder, func() { _ = os.RemoveAll(folder) }, err
}

// OpenEmpty is [Open] for a folder that is empty. What is in it is removed by release.
func OpenEmpty(name string) (folder string, release func(), err error) {
	folder, unlock, err := Open(name)
	if err != nil {
		return "", nil, err
	}
	if err = os.RemoveAll(folder); err == nil {
		err = os.Mkdir(folder, 0o755)
	}
	if err != nil {
		unlock()
		return "", nil, err
	}
	return folder, func() {
		_ = os.RemoveAll(folder)
		unlock()
	}, nil
}
