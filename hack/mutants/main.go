// Mutants measures how good the tests are. It makes small changes in the code, one at a time, and runs the tests with each: the
// explorations of package reconciletest, and all other tests. A change that no test notices has survived.
//
//	make mutants
//
// The result of each change is appended to results.jsonl, so a run that was stopped can be continued. The page docs/mutants.md has the
// numbers. It also has each change that has survived, with a reason from reasons.txt. The flag -h lists the rest.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	seed := flag.Uint64("seed", 1, "the seed of the sample")
	only := flag.String("area", "", "only the areas whose names contain this `text`, such as memcached")
	pageOnly := flag.Bool("page", false, "write the page from the results that are there, and run nothing")
	again := flag.Bool("again", false, "run the changes once more that have survived so far")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unknown argument %q; see -h", flag.Arg(0))
	}
	root, err := repository()
	if err != nil {
		return err
	}
	known, err := readResults(filepath.Join(root, resultsFile))
	if err != nil {
		return err
	}
	sample, err := sampleOf(root, *seed)
	if err != nil {
		return err
	}
	if !*pageOnly {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		s := &session{root: root, known: known, again: *again, begun: time.Now()}
		if err := s.test(ctx, sample, *only); err != nil {
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("stopped; call it again, and it goes on")
			}
			return err
		}
	}
	return writePage(root, sample, known)
}

// repository returns the root of the checkout in which the command runs.
func repository() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		content, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module github.com/opblocks/opblocks\n") {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("call it in a checkout of opblocks")
		}
		folder = parent
	}
}
