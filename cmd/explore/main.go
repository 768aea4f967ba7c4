// Explore writes the test with which package reconciletest explores an operator that exists already:
//
//	go run github.com/opblocks/opblocks/cmd/explore@latest ./internal/controller
//
// It reads the Go code, the custom resource definitions and the samples of the operator's module. It writes explore_test.go
// beside the reconcilers, and prints what it found, what is left to fill in, and the commands that come next. The flag -h
// lists the rest.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

const usage = `explore writes the test with which github.com/opblocks/opblocks/reconcile/reconciletest explores an operator that exists
already: it injects every fault at every point of a run.

  explore [flags] [folder …]
        reads the reconcilers in the folders and below, such as ./controllers or ./internal/controller, and writes
        explore_test.go beside them; without a folder: all reconcilers of the module in which it runs

Flags:
`

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// options are the command's flags and arguments.
type options struct {
	output  string   // the name of the file that is written; "-" prints it
	force   bool     // overwrites the file
	folders []string // the folders of the arguments; "." if there are none
}

// run returns the exit code: 2 for wrong arguments, 1 for any other error.
func run(args []string, stdout, stderr io.Writer) int {
	opts := options{}
	flags := flag.NewFlagSet("explore", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&opts.output, "o", "explore_test.go", "the `name` of the file that is written beside the reconcilers; - prints it")
	flags.BoolVar(&opts.force, "f", false, "overwrite the file if it exists")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		flags.SetOutput(stdout)
		flags.PrintDefaults()
		return 0
	case err != nil:
		fmt.Fprintf(stderr, "explore: %v; see explore -h\n", err)
		return 2
	}
	if opts.output != "-" && (filepath.Base(opts.output) != opts.output || !strings.HasSuffix(opts.output, "_test.go")) {
		fmt.Fprintf(stderr, "explore: -o %s: name a file that ends in _test.go, without a folder: it is written beside the reconcilers\n", opts.output)
		return 2
	}
	if opts.folders = flags.Args(); len(opts.folders) == 0 {
		opts.folders = []string{"."}
	}
	if err := explore(opts, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "explore: %v\n", err)
		return 1
	}
	return 0
}

// explore writes a file for each package that has reconcilers.
func explore(opts options, stdout, stderr io.Writer) error {
	m, err := openModule(opts.folders[0])
	if err != nil {
		return err
	}
	pkgs, err := m.withReconcilers(opts.folders)
	if err != nil {
		return err
	}
	if opts.output == "-" {
		stdout, stderr = stderr, stdout // the report must not be mixed with the file
	}
	found := m.manifests()
	for _, p := range pkgs {
		file := filepath.Join(p.dir, opts.output)
		if _, err := os.Stat(file); err == nil && opts.output != "-" && !opts.force {
			return fmt.Errorf("%s exists: overwrite it with -f, or choose another name with -o", m.relative(file))
		}
		generated := m.generate(p, found)
		content, err := generated.file()
		if err != nil {
			return fmt.Errorf("the test of %s could not be written: %w", m.relative(p.dir), err)
		}
		if opts.output == "-" {
			fmt.Fprint(stderr, string(content))
		} else if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
		generated.report(stdout, opts.output, content)
	}
	return nil
}
