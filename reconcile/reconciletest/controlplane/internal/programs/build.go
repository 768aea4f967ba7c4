package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// goCommand returns a go command in a folder that has a module. The user's environment does not change what is built, except CGO_ENABLED.
// Packages are compiled as `go test` compiles them, so that packages which a test and the control plane share are compiled only once.
// Compilers take a fifth less time without garbage collection, and few of them allocate more than 1 GiB.
func goCommand(ctx context.Context, folder string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = folder
	// An empty GOFLAGS would leave the GOFLAGS of `go env -w` in force.
	cmd.Env = append(cmd.Environ(), "GO111MODULE=on", "GOWORK=off", "GOFLAGS=-buildvcs=false",
		"GOGC=off", "GOMEMLIMIT=1GiB", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	return cmd
}

// These are the names of folders in the folder of a build.
const (
	unfinished = ".new-*" // a pattern: each build has a folder of its own
	sources    = "module"
	executable = "bin"
)

// build builds the named programs that are missing. Only one process builds at a time. Other processes wait, and then find the programs. At
// the end the programs are moved into the folder, so an error leaves nothing behind.
func (m *Module) build(ctx context.Context, folder string, names []string) error {
	cache := filepath.Dir(folder)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return unwritable(err)
	}
	unlock, err := lock(ctx, filepath.Join(cache, ".lock"))
	if err != nil {
		return unwritable(err)
	}
	defer unlock()
	missing := m.missing(folder, names)
	if len(missing) == 0 {
		return nil
	}
	if err := removeUnfinished(cache); err != nil {
		return unwritable(err)
	}
	fresh, err := os.MkdirTemp(cache, unfinished)
	if err != nil {
		return unwritable(err)
	}
	defer os.RemoveAll(fresh)
	begin := time.Now()
	if err := m.buildIn(ctx, fresh, filepath.Join(folder, sources), missing); err != nil {
		return fmt.Errorf("build %s for the control plane: %w", list(missing), err)
	}
	if err := m.install(fresh, folder, missing); err != nil {
		return unwritable(err)
	}
	say("%s: built in %s, after %s", list(missing), folder, time.Since(begin).Round(time.Second))
	return nil
}

// buildIn builds programs in the new folder fresh. One go command builds all of them, so that it can link one program while it compiles
// another. If programs of the module were built before, the folder resolved has the complete files of the module.
func (m *Module) buildIn(ctx context.Context, fresh, resolved string, missing []Program) error {
	module, bin := filepath.Join(fresh, sources), filepath.Join(fresh, executable)
	if err := errors.Join(os.Mkdir(module, 0o755), os.Mkdir(bin, 0o755)); err != nil {
		return unwritable(err)
	}
	if err := m.write(module); err != nil {
		return unwritable(err)
	}
	stop := progress(func() string {
		done, _ := os.ReadDir(bin)
		return fmt.Sprintf("building %s (%d of %d done)", list(missing), len(done), len(missing))
	}, time.Now())
	defer stop()
	readonly := "-mod=readonly"
	if m.resolve != nil {
		readonly = "-mod=mod"
		if err := m.complete(ctx, module, resolved); err != nil {
			return err
		}
	}
	arguments := append([]string{"build", readonly, "-o", bin + string(filepath.Separator)}, m.Flags...)
	for _, p := range missing {
		arguments = append(arguments, p.Package)
	}
	output, err := goCommand(ctx, module, arguments...).CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return explain(err, output)
	}
	return nil
}

// complete writes the complete go.mod and go.sum of a module whose files are not complete. If an earlier build has left them in resolved,
// it copies them.
func (m *Module) complete(ctx context.Context, module, resolved string) error {
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(resolved, name))
		if errors.Is(err, os.ErrNotExist) {
			return m.resolve(ctx, module)
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(module, name), content, 0o644); err != nil {
			return unwritable(err)
		}
	}
	return nil
}

// install moves programs from the folder in which they were built into their own folder. If the files of the module had to be completed, it
// keeps them there too, for programs that are built later.
func (m *Module) install(fresh, folder string, built []Program) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	resolved := filepath.Join(folder, sources)
	if _, err := os.Stat(resolved); m.resolve != nil && errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(filepath.Join(fresh, sources), resolved); err != nil {
			return err
		}
	}
	for _, p := range built {
		if err := os.Rename(filepath.Join(fresh, executable, p.executable()), filepath.Join(folder, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// removeUnfinished removes the folders of builds whose process was killed.
func removeUnfinished(cache string) error {
	folders, err := filepath.Glob(filepath.Join(cache, unfinished))
	for _, folder := range folders {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

// list returns the names of programs as text.
func list(programs []Program) string {
	var names []string
	for _, p := range programs {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}
