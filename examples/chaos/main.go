// Chaos runs the example operators on a real control plane and a real database, as two replicas each, while users change
// their objects and everything around them fails. Then it looks whether all is exactly as it should be:
//
//	go run ./chaos [-seed n] [-storm 5m] [-kills 50] [-objects 200]
//
// It prints each kind of fault with the times that it was injected, and ends with exit code 1 if anything is left over,
// missing or done twice. It takes less than ten minutes, and is run in the repository's root folder.
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
)

func main() {
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "What the choice of faults and changes begins with; the moments differ from run to run all the same.")
	storm := flag.Duration("storm", 5*time.Minute, "How long things fail.")
	objects := flag.Int("objects", 200, "How many objects users keep, of all kinds together.")
	kills := flag.Int("kills", 50, "How many processes are killed at least, however long that takes.")
	keep := flag.Bool("keep", false, "Leave everything running after a failure, and say how to look at it.")
	flag.Parse()
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

// limits of the phases after the storm.
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
	// The garbage collector misses an owner that was deleted and made anew under its name while its own watch was broken.
	if err := c.cp.RestartControllerManager(ctx); err != nil {
		return err
	}
	if err := c.settle(ctx, "all is as the users want it", calmDown, users.differences); err != nil {
		return err
	}
	if err := users.leave(ctx); err != nil {
		return err
	}
	if err := c.settle(ctx, "nothing is left of what the users deleted", cleanUp, users.differences); err != nil {
		return err
	}
	fmt.Println("Survived.")
	return nil
}

// randomOf gives the same numbers for the same seed.
func randomOf(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream)) //nolint:gosec // no secret comes of it, and a run can be repeated
}
