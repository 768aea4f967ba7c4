//go:build !race

// Programs are built and run here, which the race detector does not see.

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCopies copies each example by the built program, with the library of the checkout, and checks that its own targets accept the copy.
// What the tests of a copy show is shown in the repository, and for one example by [TestGettingStarted].
func TestCopies(t *testing.T) {
	program := filepath.Join(t.TempDir(), "new")
	runCommand(t, ".", []string{"GOWORK=" + filepath.Join(root, "go.work")}, "go", "build", "-buildvcs=false", "-o", program, ".")
	for example, flags := range map[string]map[string]string{
		"app":          {"kind": "Order", "group": "shop.example.com", "version": "v1beta1"},
		"cache":        {"kind": "Queue"},
		"databaseuser": {"kind": "MailAccount", "version": "v1"},
		"eru":          {"kind": "Policy"},
	} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			copied := filepath.Join(t.TempDir(), "shop")
			flags["from"], flags["skip-tidy"] = example, "false"
			runCommand(t, ".", nil, program, arguments(copied, flags)...)
			assertRenamed(t, copied, example)
			runCommand(t, copied, nil, "go", "list", "-test", "-export", "./...") // compiles the tests too, and links nothing
			assertGenerated(t, copied)
		})
	}
}

// assertRenamed asserts that the sources of a copy are formatted, and that none has a name of the repository's module, nor one of the
// example that is the kind for certain.
func assertRenamed(t *testing.T, folder, example string) {
	t.Helper()
	old := regexp.MustCompile(`opblocks/examples/(` + example + `|internal)|(?i)\b` + example + `(spec|status|list)\b|cache\.example\.com|huolala|meitu|handsomeguy|store\.example\.com`)
	for name, text := range contents(t, folder) {
		assert.NotRegexp(t, old, string(text), name)
		assert.NotRegexp(t, old, name)
	}
	assert.Empty(t, runCommand(t, folder, nil, "gofmt", "-d", "."))
}

// assertGenerated asserts that controller-gen generates what the copy has.
func assertGenerated(t *testing.T, folder string) {
	t.Helper()
	before := contents(t, folder)
	runCommand(t, folder, nil, "make", "generate", "manifests")
	after := contents(t, folder)
	for name, text := range after {
		assert.Empty(t, cmp.Diff(string(before[name]), string(text)), name)
	}
	assert.Len(t, after, len(before))
}

// contents returns the files of a folder by their paths.
func contents(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = os.ReadFile(filepath.Join(folder, name))
		return err
	}))
	return files
}

// runCommand runs a program in a folder, outside of the workspace, and returns what it prints.
func runCommand(t *testing.T, folder string, environment []string, name string, arguments ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = folder, &out, &out
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "MAKEFLAGS="), environment...)
	require.NoError(t, cmd.Run(), "%s %s: %s", name, strings.Join(arguments, " "), &out)
	return out.String()
}
