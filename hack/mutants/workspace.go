package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// workspace is a temporary folder with the changed file and the test binaries built with it. The checkout itself is not changed.
type workspace struct {
	root   string
	change *mutant // nil: no change
	folder string
}

func newWorkspace(root string, change *mutant) (*workspace, error) {
	folder, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	w := &workspace{root: root, change: change, folder: folder}
	replaced := map[string]string{}
	if change != nil {
		original := filepath.Join(root, change.File)
		content, err := os.ReadFile(original)
		if err != nil {
			return nil, err
		}
		changed := filepath.Join(folder, filepath.Base(change.File))
		if err := os.WriteFile(changed, change.apply(content), 0o644); err != nil {
			return nil, err
		}
		replaced[original] = changed
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	return w, os.WriteFile(w.overlay(), overlay, 0o644)
}

func (w *workspace) remove() { _ = os.RemoveAll(w.folder) }

func (w *workspace) overlay() string { return filepath.Join(w.folder, "overlay.json") }

// compiles reports whether the changed package compiles.
func (w *workspace) compiles(ctx context.Context) (bool, error) {
	module, pkg := ".", path.Dir(w.change.File)
	if rest, inExamples := strings.CutPrefix(pkg, "examples/"); inExamples {
		module, pkg = "examples", rest
	}
	_, err := w.goCommand(ctx, module, "build", "-overlay", w.overlay(), "./"+pkg)
	return err == nil, ctx.Err()
}

// maxTime is how long the tests of one suite may take. If they take longer with a change, the change counts as noticed.
const maxTime = 10 * time.Minute

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs suites one after another until one fails. It returns the first test that fails, "" if none does.
func (w *workspace) test(ctx context.Context, suites []suite) (failed string, err error) {
	for _, s := range suites {
		binary := filepath.Join(w.folder, strings.ReplaceAll(s.pkg, "/", "-")+".test")
		if _, err := os.Stat(binary); err != nil {
			if output, err := w.goCommand(ctx, s.module, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", w.overlay(), "-o", binary, "./"+s.pkg); err != nil {
				return "", errors.Join(ctx.Err(), fmt.Errorf("building the tests of %s: %w\n%s", s.pkg, err, output))
			}
		}
		folder := filepath.Join(w.root, s.module, s.pkg)
		args := []string{"-test.failfast", "-test.timeout", maxTime.String()}
		if s.short {
			args = append(args, "-test.short")
		}
		if s.part != everything {
			names, err := explorationsIn(folder)
			if err != nil {
				return "", err
			}
			which := "-test.run"
			if s.part == others {
				which = "-test.skip"
			}
			args = append(args, which, "^("+strings.Join(names, "|")+")$")
		}
		output, err := w.command(ctx, folder, binary, args...)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			return nameOf(s, output), nil
		}
	}
	return "", nil
}

// nameOf returns the first test that has failed.
func nameOf(s suite, output []byte) string {
	name := s.pkg
	switch found := failedTest.FindSubmatch(output); {
	case found != nil:
		name += " " + string(found[1])
	case bytes.Contains(output, []byte("panic: test timed out")):
		name += ", which does not end"
	case bytes.Contains(output, []byte("panic: ")):
		name += ", which panics"
	}
	return name
}

func (w *workspace) goCommand(ctx context.Context, module string, args ...string) ([]byte, error) {
	return w.command(ctx, filepath.Join(w.root, module), "go", args...)
}

// command runs a program in a folder of the checkout, with the files of the workspace. If the context ends, it kills the program and its
// children.
func (w *workspace) command(ctx context.Context, folder, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	c.Env = append(os.Environ(), "GOWORK="+filepath.Join(w.root, "go.work"), "GOFLAGS=")
	return c.CombinedOutput()
}
