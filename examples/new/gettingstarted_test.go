//go:build !race

// Programs are built and run here, which the race detector does not see.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/buildfolder"
)

// TestGettingStarted runs the page docs/getting-started.md in an empty folder, as a user does who types its commands into one shell and
// copies its files. The library comes through a module proxy. Before the page removes the example's controller, the test checks the
// copy.
func TestGettingStarted(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	page, err := os.ReadFile(filepath.Join(checkout, "docs", "getting-started.md"))
	require.NoError(t, err)
	blocks, err := blocksOf(string(page))
	require.NoError(t, err)
	removal := slices.IndexFunc(blocks, func(b block) bool { return strings.HasPrefix(b.text, "rm -r controller/") })
	require.Positive(t, removal, "the page does not remove the example's controller")
	copied := filepath.Join(t.TempDir(), "copied")
	blocks[removal-1].text += copyChecks(copied)

	r := release(t)
	output := runBlocks(t, blocks, r.environment)
	assert.Contains(t, output, "shop has the operator of kind Shop, of the API shop.example.com/v1alpha1")
	assertReleased(t, copied, r.version)
	assertRenamed(t, copied, "memcached")
}

// block is a block of a page: commands for a shell, what they print, or the content of a file.
type block struct {
	line   int    // its line on the page
	text   string // with a newline at the end
	file   string // its name, if it is the content of one
	output bool   // it is what the commands before it print, where … stands for anything
}

var (
	blockForm = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")
	fileForm  = regexp.MustCompile("`([\\w./-]+)`:\n\n$")
)

// blocksOf returns the blocks of a page in their order. A block that is neither of shell commands nor their output is the file that the
// line before it names. The error names a block without such a line.
func blocksOf(page string) (blocks []block, err error) {
	for _, at := range blockForm.FindAllStringSubmatchIndex(page, -1) {
		b := block{line: 1 + strings.Count(page[:at[0]], "\n"), text: page[at[4]:at[5]]}
		switch page[at[2]:at[3]] {
		case "sh":
		case "text":
			b.output = true
		default:
			named := fileForm.FindStringSubmatch(page[:at[0]])
			if named == nil {
				return nil, fmt.Errorf("line %d: no file is named before the block; write `path/file.go`: above it", b.line)
			}
			b.file = named[1]
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// needsDocker are commands that are left out where docker does not run.
var needsDocker = regexp.MustCompile(`(?m)^make docker-(build|push) `)

// runBlocks runs the blocks in an empty folder, in one shell with job control, as a terminal has it. Blocks for docker
// are left out where it does not run. A push is always left out, since no registry has the page's name. What runs in
// the background ends with the shell. runBlocks returns what the blocks print.
func runBlocks(t *testing.T, blocks []block, environment []string) string {
	t.Helper()
	parts := t.TempDir()
	folder, release, err := buildfolder.OpenEmpty("getting-started")
	require.NoError(t, err)
	t.Cleanup(release)
	withoutDocker := exec.Command("docker", "info").Run() != nil
	script := &strings.Builder{}
	// If the page does not end the detached control plane, since a command fails or the test is ended, the shell ends it.
	script.WriteString("set -e -m\ntrap 'kill $(jobs -p) ${CONTROLPLANE_PID:-} 2>/dev/null || true' EXIT\n")
	for _, b := range blocks {
		fmt.Fprintf(script, "echo '--- docs/getting-started.md, line %d'\n", b.line)
		switch {
		case b.output:
		case b.file != "":
			part := filepath.Join(parts, strconv.Itoa(b.line))
			require.NoError(t, os.WriteFile(part, []byte(b.text), 0o600))
			fmt.Fprintf(script, "cp %s %s\n", part, b.file)
		case withoutDocker && needsDocker.MatchString(b.text):
			fmt.Fprintln(script, "echo 'left out: docker does not run'")
		default:
			for command := range strings.Lines(b.text) {
				if !strings.HasPrefix(command, "make docker-push ") {
					script.WriteString(command)
				}
			}
		}
	}
	file := filepath.Join(parts, "script")
	require.NoError(t, os.WriteFile(file, []byte(script.String()), 0o600))

	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Minute)
	defer cancel()
	output := &bytes.Buffer{}
	shell := exec.CommandContext(ctx, "bash", file)
	printed := io.MultiWriter(output, t.Output())
	shell.Dir, shell.Stdout, shell.Stderr = folder, printed, printed
	shell.Env = append(append(os.Environ(), "GOWORK=off", "MAKEFLAGS="), environment...)
	shell.Cancel = func() error { return shell.Process.Signal(syscall.SIGTERM) }
	shell.WaitDelay = 10 * time.Second
	err = shell.Run()
	if log, readErr := os.ReadFile(filepath.Join(folder, "shop", "operator.log")); err != nil && readErr == nil {
		t.Logf("operator.log:\n%s", log)
	}
	require.NoError(t, err, "the page stops here:\n%s", lastLines(output.String()))
	for i, b := range blocks {
		if b.output && i > 0 {
			begin := fmt.Sprintf("--- docs/getting-started.md, line %d\n", blocks[i-1].line)
			_, after, _ := strings.Cut(output.String(), begin)
			after, _, _ = strings.Cut(after, "\n--- docs/getting-started.md, line ")
			assert.Regexp(t, b.pattern(), after, "line %d: the commands before it print something else", b.line)
		}
	}
	return output.String()
}

// pattern returns a regular expression for the output of a block. It allows other numbers of spaces, with which kubectl aligns columns.
func (b *block) pattern() string {
	text := regexp.QuoteMeta(strings.TrimSpace(b.text))
	return regexp.MustCompile(` +`).ReplaceAllString(strings.ReplaceAll(text, "…", `\S*`), ` +`)
}

// lastLines returns the end of an output.
func lastLines(output string) string {
	lines := strings.Split(output, "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

func TestBlocksOf(t *testing.T) {
	page := "# Page\n\n```sh\nmake\n```\n\n```text\nall  …\n```\n\nWrite `a/b.go`:\n\n```go\npackage b\n```\n"
	blocks, err := blocksOf(page)
	require.NoError(t, err)
	want := []block{{line: 3, text: "make\n"}, {line: 7, text: "all  …\n", output: true}, {line: 13, text: "package b\n", file: "a/b.go"}}
	if diff := cmp.Diff(want, blocks, cmp.AllowUnexported(block{})); diff != "" {
		t.Error(diff)
	}
	assert.Regexp(t, blocks[1].pattern(), "all   5s")
	assert.NotRegexp(t, blocks[1].pattern(), "none  5s")
	_, err = blocksOf("# Page\n\nSome code:\n\n```go\npackage b\n```\n")
	assert.EqualError(t, err, "line 5: no file is named before the block; write `path/file.go`: above it")
}
