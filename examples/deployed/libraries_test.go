//go:build !race

// Programs are built and run here, which the race detector does not see.

package deployed

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// library is a shared library in the output of ldd.
var library = regexp.MustCompile(`(/\S+) \(0x`)

// copyLibraries copies the shared libraries of a program to the same paths below root. The program needs them because the Dockerfile's
// CGO_ENABLED=0 is left out here: see [isOfCompiler].
func copyLibraries(t *testing.T, program, root string) {
	t.Helper()
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	if imported, err := file.ImportedLibraries(); err != nil || len(imported) == 0 {
		return
	}
	output, err := exec.Command("ldd", program).CombinedOutput()
	require.NoError(t, err, "%s", output)
	for _, found := range library.FindAllStringSubmatch(string(output), -1) {
		content, err := os.ReadFile(found[1])
		require.NoError(t, err)
		target := filepath.Join(root, found[1])
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, content, 0o755))
	}
}
