package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tracker follows the tests of all packages, and prints their results.
type tracker struct {
	out, log io.Writer
	begun    time.Time
	total    int
	times    *processTimes

	mu      sync.Mutex // guards the fields below
	running map[string]*testRun
	ended   []*testRun
	full    bool // the disk is full
}

// event is an event that `go test -json` prints.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // in seconds
}

func newTracker(modules []*module, out, log io.Writer) *tracker {
	t := &tracker{out: out, log: log, begun: time.Now(), running: map[string]*testRun{}, times: newProcessTimes()}
	for _, m := range modules {
		t.total += len(m.packages)
		for _, p := range m.packages {
			t.running[p.ImportPath] = &testRun{tested: p, output: map[string]*strings.Builder{}}
		}
	}
	return t
}

// watch prints every 15 seconds how far the tests are, and measures processor time, until stop is called.
func (t *tracker) watch() (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		sample, beat := time.NewTicker(time.Second), time.NewTicker(15*time.Second)
		defer sample.Stop()
		defer beat.Stop()
		for {
			select {
			case <-sample.C:
				t.times.sample()
			case <-beat.C:
				fmt.Fprintln(t.log, t.progress(time.Now()))
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-stopped }
}

// progress returns a line that says how far the tests are, and which of the running packages take longest.
func (t *tracker) progress(now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := fmt.Sprintf("opblocks: testing, %d s: %d of %d packages", int(now.Sub(t.begun).Seconds()), len(t.ended), t.total)
	begun := slices.DeleteFunc(slices.Collect(maps.Values(t.running)), func(r *testRun) bool { return now.Sub(r.begun) < 15*time.Second || r.begun.IsZero() })
	slices.SortFunc(begun, func(a, b *testRun) int { return a.begun.Compare(b.begun) })
	if len(begun) == 0 {
		return text
	}
	names := make([]string, len(begun))
	for i, r := range begun {
		names[i] = fmt.Sprintf("%s for %d s", r.tested.name(), int(now.Sub(r.begun).Seconds()))
	}
	return text + "; " + strings.Join(names, ", ")
}

// follow reads events until the command ends.
func (t *tracker) follow(events io.Reader) error {
	for decoder := json.NewDecoder(events); ; {
		var e event
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			_, _ = io.Copy(io.Discard, events) // reads the rest of the output, so that the command can end
			return fmt.Errorf("the output of go test: %w", err)
		}
		t.note(&e)
	}
}

func (t *tracker) note(e *event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.full = t.full || strings.Contains(e.Output, "no space left on device")
	r := t.running[e.Package]
	if r == nil { // the package is still being built, or has already ended
		fmt.Fprint(t.out, e.Output)
		return
	}
	switch {
	case e.Action == "start":
		r.begun = time.Now()
	case e.Action == "output":
		r.add(e.Test, e.Output)
	case e.Test != "":
		r.testEnded(e)
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		r.wall, r.broken = time.Duration(e.Elapsed*float64(time.Second)), e.Action == "fail"
		r.user = t.times.of(r.tested.Dir)
		delete(t.running, e.Package)
		t.ended = append(t.ended, r)
		r.print(t.out)
	}
}

// finish prints which packages took longest, and what failed.
func (t *tracker) finish() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprint(t.log, t.slowest(10))
	failed := false
	for _, r := range t.ended {
		if r.broken {
			failed = true
			fmt.Fprintf(t.log, "opblocks: failed: %s %s\n", r.tested.name(), strings.Join(r.failed, " "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.running)) {
		failed = true
		fmt.Fprintf(t.log, "opblocks: not tested: %s\n", name)
	}
	if t.full && failed {
		fmt.Fprintln(t.log, "opblocks: the disk is full: see df; `go clean -cache` removes what was compiled")
	}
	if failed {
		return errFailed
	}
	return nil
}

// slowest returns a table of the n packages that took longest.
func (t *tracker) slowest(n int) string {
	ran := slices.DeleteFunc(slices.Clone(t.ended), func(r *testRun) bool { return r.cached })
	slices.SortFunc(ran, func(a, b *testRun) int {
		return cmp.Or(cmp.Compare(b.wall, a.wall), cmp.Compare(a.tested.ImportPath, b.tested.ImportPath))
	})
	text := &strings.Builder{}
	fmt.Fprintf(text, "opblocks: tested %d packages in %d s, %d of them without a change since the last time", len(t.ended), int(time.Since(t.begun).Seconds()), len(t.ended)-len(ran))
	if len(ran) > 0 {
		fmt.Fprint(text, "; these took most:\n    wall       user\n")
	} else {
		fmt.Fprintln(text)
	}
	for _, r := range ran[:min(n, len(ran))] {
		user := "     ?  "
		if r.user > 0 {
			user = fmt.Sprintf("%6.1f s", r.user.Seconds())
		}
		fmt.Fprintf(text, "%6.1f s   %s   %s\n", r.wall.Seconds(), user, r.tested.name())
	}
	return text.String()
}
