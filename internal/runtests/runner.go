package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// runner runs `go test`.
type runner struct {
	race     bool          // runs only the packages that share memory, under the race detector
	timeout  time.Duration // the time limit for the tests of a package
	out, log io.Writer
}

// test runs the tests of the checkout. If tests fail, it prints them and returns errFailed.
func (r *runner) test(ctx context.Context, root string) error {
	var flags []string
	if r.race {
		flags = append(flags, "-race") // so files with the build tag !race are left out
	}
	modules, err := modulesIn(root, flags...)
	if err != nil {
		return err
	}
	if r.race {
		modules = thatShareMemory(modules)
		fmt.Fprintf(r.log, "opblocks: these packages start goroutines or use package sync:\n%s", namesOf(modules))
	}
	t := newTracker(modules, r.out, r.log)
	defer t.watch()()
	for _, m := range modules {
		if err := r.testModule(ctx, m, flags, t); err != nil {
			return err
		}
	}
	return t.finish()
}

// testModule runs the tests of a module with these flags of the compiler. The tracker gets their events. If the tests could not be run, or
// were interrupted, it returns an error.
func (r *runner) testModule(ctx context.Context, m *module, flags []string, t *tracker) error {
	// One more package than there are processors runs at once, because most of them wait for a server. `make lint` runs `go vet`.
	args := []string{"test", "-json", "-vet=off", "-ldflags=-s -w", "-parallel=6", fmt.Sprintf("-p=%d", runtime.GOMAXPROCS(0)+1), fmt.Sprintf("-timeout=%s", r.timeout)}
	args = append(args, flags...)
	for _, p := range m.packages {
		args = append(args, p.ImportPath)
	}
	command := m.command(args...)
	command.Stderr = r.log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so the command can be ended together with all its children
	events, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-command.Process.Pid, syscall.SIGTERM) })()
	unread := t.follow(events)
	err = command.Wait()
	if ctx.Err() != nil {
		return errors.New("interrupted; nothing is left running")
	}
	if failed, is := errors.AsType[*exec.ExitError](err); is && failed.ExitCode() == 1 {
		err = nil // the tests have failed, which the tracker reports
	}
	return errors.Join(unread, err)
}
