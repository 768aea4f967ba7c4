package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// storm injects faults one after the other, while the users go on. It ends after a time, but not before a number of processes
// were killed.
func (c *cluster) storm(ctx context.Context, users *users, random *rand.Rand, length time.Duration, kills int, report *report) error {
	began := time.Now()
	fmt.Printf("Injecting faults for %v.\n", length)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var failed error
	over := make(chan struct{})
	wg.Go(func() {
		failed = users.live(ctx, over)
		stop()
	})
	printed, faults := began, newPicker(random)
	for time.Since(began) < length || report.kills < kills {
		if time.Since(printed) > 15*time.Second {
			printed = time.Now()
			say("%.0f s, %d faults, %d changes by users", time.Since(began).Seconds(), report.total, users.changes.Load())
		}
		f := faults.pick()
		what, err := f.inject(ctx, c, users, random)
		if err == nil {
			report.add(f.name == "kill", what)
			err = errors.Join(c.restartEnded(report), pause(ctx, time.Duration(500+random.IntN(2000))*time.Millisecond))
		}
		if err != nil {
			stop()
			wg.Wait()
			return errors.Join(failed, err)
		}
	}
	report.length = time.Since(began)
	close(over)
	wg.Wait()
	return failed
}

// restartEnded starts operators again that have exited, as they do when they lose their lease.
func (c *cluster) restartEnded(report *report) error {
	for _, r := range c.replicas {
		if r.process.Err() == nil {
			continue
		}
		report.add(false, "operator exited by itself, and started again")
		if err := r.start(); err != nil {
			return err
		}
	}
	return nil
}
