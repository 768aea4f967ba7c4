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

// Compile compiles the program of the example whose folder is the parent of the working directory, and returns the program's path. The tests
// of a package share the program. [Main] removes it at the end, unless the next run can use it.
func Compile(t testing.TB) (path string) {
	t.Helper()
	path, err := compiled()
	require.NoError(t, err)
	return path
}

// releaseCompiled releases the folder of the program, if a test has compiled it.
var releaseCompiled = func() {}

var compiled = sync.OnceValues(func() (path string, err error) {
	tests, err := os.Getwd()
	if err != nil {
		return "", err
	}
	built, release, err := buildfolder.Open(filepath.Base(filepath.Dir(tests)) + "-operator")
	if err != nil {
		return "", err
	}
	releaseCompiled = release
	return compile(built)
})

// compile compiles the program into a folder. flags are more flags of go build.
func compile(folder string, flags ...string) (path string, err error) {
	path = filepath.Join(folder, "operator")
	build := exec.Command("go", append(append([]string{"build", "-buildvcs=false", "-ldflags=-s -w"}, flags...), "-o", path, "..")...)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}
