// Runtests runs the tests of all modules of the repository:
//
//	go run ./internal/runtests
//	go run ./internal/runtests -race
//
// The first runs every test file. The second runs the packages that share memory between goroutines once more, under the race detector. While
// they run it prints how far they are, and at the end the packages that took longest. `make test` and `make test-race` call it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	err := run()
	if errors.Is(err, errFailed) { // the output of the failed tests has been printed
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "opblocks:", err)
		os.Exit(2)
	}
}

// errFailed is the error if tests fail.
var errFailed = errors.New("tests failed")

func run() error {
	race := flag.Bool("race", false, "test under the race detector, and only the packages that share memory between goroutines")
	timeout := flag.Duration("timeout", 30*time.Minute, "how long the tests of a package may take before it fails, and prints its goroutines")
	flag.Parse()
	if *race && !hasCompiler() {
		const missing = "the race detector needs a C compiler, and there is none: install one, such as gcc, or set CC"
		if os.Getenv("CI") != "" {
			return errors.New(missing)
		}
		fmt.Fprintln(os.Stderr, "opblocks:", missing+". Nothing was tested")
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return (&runner{*race, *timeout, os.Stdout, os.Stderr}).test(ctx, ".")
}

// hasCompiler reports whether the go command can compile C. The go command itself finds that out.
func hasCompiler() bool {
	enabled, err := exec.Command("go", "env", "CGO_ENABLED").Output()
	return err == nil && strings.TrimSpace(string(enabled)) == "1"
}
