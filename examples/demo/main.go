// Demo runs the example operators on a real control plane, and prints the commands that a user would type, with their output:
//
//	go run ./demo [-keep] [example...]
//
// It checks the result of each stage. If a result is not as expected, it says what was expected and exits with code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// chapter shows one example, or a part of it.
type chapter struct {
	name string // the name of its example
	run  func(*tour)
}

var chapters = []chapter{
	{"memcached", memcached},
	{"memcached", versions},
	{"app", app},
	{"databaseuser", databaseuser},
	{"eru", eru},
	{"cache", cache},
}

func main() {
	keep := flag.Bool("keep", false, "Keep the control plane, the operators and their databases running, and print how to use and stop them.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *keep, flag.Args())
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "\ndemo: interrupted; nothing is left behind")
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, keep bool, names []string) (err error) {
	selected, err := choose(names)
	if err != nil {
		return err
	}
	if err := toRepositoryRoot(); err != nil {
		return err
	}
	t := newTour(ctx)
	began := time.Now()
	t.title("A control plane")
	t.say("This starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and kwok, which simulates nodes: pods become Ready, but no container runs.")
	if t.cp, err = controlplane.Start(ctx, controlplane.Options{Controllers: true}); err != nil {
		return err
	}
	defer func() {
		if keep && ctx.Err() == nil {
			err = errors.Join(err, t.leave())
		} else {
			err = errors.Join(err, t.stop())
		}
	}()
	t.printer.Succeeded("the control plane is up", began)
	t.buildOperators(selected)
	t.kubectl("version")
	t.kubectl("get", "nodes")
	for _, c := range selected {
		c.run(t)
		if t.err != nil {
			t.showLogs()
			return t.err
		}
	}
	t.title("Everything was as expected")
	return nil
}

func choose(names []string) ([]chapter, error) {
	if len(names) == 0 {
		return chapters, nil
	}
	var selected []chapter
	for _, name := range names {
		known := len(selected)
		for _, c := range chapters {
			if c.name == name {
				selected = append(selected, c)
			}
		}
		if len(selected) == known {
			return nil, fmt.Errorf("there is no example %q; the examples are: %s", name, strings.Join(examplesOf(chapters), ", "))
		}
	}
	return selected, nil
}

// examplesOf returns the names of the examples that chapters show, each once.
func examplesOf(chapters []chapter) (names []string) {
	for _, c := range chapters {
		if !slices.Contains(names, c.name) {
			names = append(names, c.name)
		}
	}
	return names
}

// toRepositoryRoot changes to the root of the repository, so that the paths in the output are relative to it.
func toRepositoryRoot() error {
	for {
		if _, err := os.Stat("examples/go.mod"); err == nil {
			return nil
		}
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		if here == "/" {
			return errors.New("run the demo inside a checkout of github.com/opblocks/opblocks")
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
	}
}
