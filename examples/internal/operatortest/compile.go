package operatortest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/buildfolder"
)

// program is the program of the example while tests use it.
var program struct {
	mu      sync.Mutex
	users   int // how many tests use it
	path    string
	release func()
}

// Compile compiles the program of the example whose folder is the parent of the working directory, and returns the program's path. Tests that
// run at the same time share the program.
func Compile(t testing.TB) (path string) {
	t.Helper()
	program.mu.Lock()
	defer program.mu.Unlock()
	if program.users == 0 {
		tests, err := os.Getwd()
		require.NoError(t, err)
		folder, release, err := buildfolder.Open(filepath.Base(filepath.Dir(tests)) + "-operator")
		require.NoError(t, err)
		program.release = release
		if program.path, err = compile(folder); err != nil {
			release()
			require.NoError(t, err)
		}
	}
	program.users++
	t.Cleanup(func() {
		program.mu.Lock()
		defer program.mu.Unlock()
		if program.users--; program.users == 0 {
			program.release()
		}
	})
	return program.path
}

// compile compiles the program into a folder. flags are more flags of go build.
func compile(folder string, flags ...string) (path string, err error) {
	path = filepath.Join(folder, "operator")
	build := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-s -w"}, flags...), "-o", path, "..")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}
