package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// testRun is the run of one package's tests.
type testRun struct {
	tested *testedPackage
	begun  time.Time
	wall   time.Duration
	user   time.Duration // processor time of the tests and of all that they started; 0: not known
	failed []string      // the names of the tests
	broken bool          // the package failed
	cached bool

	output map[string]*strings.Builder // what the package, "", and its tests that have not passed have printed
	order  []string                    // their names
}

func (r *testRun) add(test, output string) {
	if r.output[test] == nil {
		r.output[test] = &strings.Builder{}
		r.order = append(r.order, test)
	}
	r.output[test].WriteString(output)
	r.cached = r.cached || test == "" && strings.HasSuffix(output, "\t(cached)\n")
}

func (r *testRun) testEnded(e *event) {
	switch e.Action {
	case "pass", "skip":
		delete(r.output, e.Test) // nobody reads it
	case "fail":
		r.failed = append(r.failed, e.Test)
	}
}

// print prints the last line of a package, such as "ok" with its time. If it has failed, all output of tests that have not passed comes before.
func (r *testRun) print(out io.Writer) {
	own := r.output[""]
	if own == nil {
		own = &strings.Builder{}
	}
	if !r.broken {
		lines := strings.SplitAfter(strings.TrimSuffix(own.String(), "\n"), "\n")
		fmt.Fprintln(out, lines[len(lines)-1])
		return
	}
	for _, test := range r.order {
		if output := r.output[test]; output != nil && test != "" {
			fmt.Fprint(out, output)
		}
	}
	fmt.Fprint(out, own)
}
