package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// testRun is one run of the tests of a package.
type testRun struct {
	tested *testedPackage
	begun  time.Time
	wall   time.Duration
	user   time.Duration // the processor time of the tests and of all programs that they started; 0 if it is not known
	failed []string      // the names of the failed tests
	broken bool          // the package has failed
	cached bool

	output map[string]*strings.Builder // the output by test, without tests that have passed; the output of the package itself has the key ""
	order  []string                    // the keys of output in the order in which they were added
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
		delete(r.output, e.Test) // the output of a passed test is never printed
	case "fail":
		r.failed = append(r.failed, e.Test)
	}
}

// print prints the last line of a package's output, such as "ok" with the time. If the package has failed, it first prints all output of
// the tests that have not passed.
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
