// Demo runs the example operators on a real control plane, and shows what their users would type and see:
//
//	go run ./demo [-keep] [example...]
//
// Each stage is checked. It ends with exit code 1, and says what was expected, when one is not as it should be.
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

	"github.com/opblocks/opblocks/internal/controlplane"
)

// chapter shows one example.
type chapter struct {
	name string
	tell func(*tour)
}

var chapters = []chapter{
	{"memcached", memcached},
	{"app", app},
	{"databaseuser", databaseuser},
	{"eru", eru},
}

func main() {
	keep := flag.Bool("keep", false, "Leave the control plane, the operators and their databases running, and say how to use and stop them.")
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
	t.say("Starting etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok, which simulates nodes: pods become Ready there, but no container runs.")
	if t.cp, err = controlplane.Start(ctx, controlplane.WithControllers()); err != nil {
		return err
	}
	defer func() {
		if keep && ctx.Err() == nil {
			err = errors.Join(err, t.leave())
		} else {
			err = errors.Join(err, t.stop())
		}
	}()
	t.succeeded("it is up", began)
	t.kubectl("version")
	t.kubectl("get", "nodes")
	for _, c := range selected {
		c.tell(t)
		if t.err != nil {
			t.showLogs()
			return t.err
		}
	}
	t.title("All was as expected")
	return nil
}

func choose(names []string) ([]chapter, error) {
	if len(names) == 0 {
		return chapters, nil
	}
	var selected []chapter
	for _, name := range names {
		i := slices.IndexFunc(chapters, func(c chapter) bool { return c.name == name })
		if i < 0 {
			var known []string
			for _, c := range chapters {
				known = append(known, c.name)
			}
			return nil, fmt.Errorf("no example is called %q; there are: %s", name, strings.Join(known, ", "))
		}
		selected = append(selected, chapters[i])
	}
	return selected, nil
}

// toRepositoryRoot makes paths in what is shown relative to where a reader has cloned the repository.
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
			return errors.New("run it from within a checkout of github.com/opblocks/opblocks")
		}
		if err := os.Chdir(".."); err != nil {
			return err
		}
	}
}
