// Chaos runs two replicas of each example operator on a real control plane and a real database, while users change their
// objects and everything around them fails. Then it checks that everything is exactly as specified:
//
//	go run ./chaos [-seed n] [-storm 5m] [-kills 50] [-objects 200]
//
// It prints how often each kind of fault was injected. It exits with code 1 if anything is left over, missing or done twice. It
// takes less than ten minutes. Run it in the root folder of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "Seed for the choice of faults and changes. Their times still differ from run to run.")
	storm := flag.Duration("storm", 5*time.Minute, "How long faults are injected.")
	objects := flag.Int("objects", 200, "Number of objects of the users, of all kinds together.")
	kills := flag.Int("kills", 50, "Minimum number of processes to kill, however long that takes.")
	keep := flag.Bool("keep", false, "Keep everything running after a failure, and print how to look at it.")
	flag.Parse()
	log.SetLogger(logr.Discard()) // the library of the control plane logs what nobody has to know
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *seed, *storm, *kills, *objects, *keep)
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case interrupted:
		fmt.Fprintln(os.Stderr, "\nchaos: interrupted; nothing is left behind")
		os.Exit(130)
	case err != nil:
		fmt.Fprintf(os.Stderr, "\nchaos: %v\nThe seed was %d.\n", err, *seed)
		os.Exit(1)
	}
}

// Time limits of the phases after the storm.
const (
	calmDown = 3 * time.Minute
	cleanUp  = 2 * time.Minute
)

func run(ctx context.Context, seed uint64, storm time.Duration, kills, objects int, keep bool) (err error) {
	fmt.Printf("Chaos with the seed %d.\n", seed)
	c, err := start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && keep && ctx.Err() == nil {
			err = errors.Join(err, c.leave())
		} else {
			err = errors.Join(err, c.stop())
		}
	}()

	users := newUsers(c, randomOf(seed, 1))
	go users.schedules.watch(ctx)
	if err := users.arrive(ctx, objects); err != nil {
		return err
	}
	report := &report{}
	if err := c.storm(ctx, users, randomOf(seed, 2), storm, kills, report); err != nil {
		return err
	}
	report.print(users)
	// The garbage collector misses the deletion of an owner that was created again under its name while its watch was broken.
	if err := c.cp.RestartControllerManager(ctx); err != nil {
		return err
	}
	if err := c.settle(ctx, "everything is as the users specified it", calmDown, users.differences); err != nil {
		return err
	}
	if err := users.leave(ctx); err != nil {
		return err
	}
	if err := c.settle(ctx, "everything that the users deleted is gone", cleanUp, users.differences); err != nil {
		return err
	}
	fmt.Println("Survived.")
	return nil
}

// randomOf returns a generator of the same numbers for the same seed.
func randomOf(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // no secret comes of it, and a run can be repeated
}
