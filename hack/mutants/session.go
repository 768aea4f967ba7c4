package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// session tests the changes of a sample that have no result yet.
type session struct {
	root  string
	known *results
	again bool
	begun time.Time

	mu    sync.Mutex // guards the fields below
	ended int
	total int
}

// test tests the changes that have no result yet, area by area. If a change does not compile, the next one replaces it.
func (s *session) test(ctx context.Context, sample []sampled, only string) error {
	chosen, err := choose(sample, only)
	if err != nil {
		return err
	}
	for i := range chosen {
		s.total += s.missing(&chosen[i])
	}
	for i := range chosen {
		if err := s.testArea(ctx, &chosen[i]); err != nil {
			return err
		}
	}
	return nil
}

// missing returns how many changes of an area have no result yet.
func (s *session) missing(of *sampled) (open int) {
	q := s.queue(of)
	for _, ok := q.take(); ok; _, ok = q.take() {
		open++
	}
	return open
}

// queue has the changes of an area that are still to be tested. Its methods may be called by several goroutines.
type queue struct {
	of     *sampled
	isOpen func(m mutant) (open, counts bool)

	mu      sync.Mutex // guards the fields below
	next    int
	counted int
}

func (s *session) queue(of *sampled) *queue {
	return &queue{of: of, isOpen: func(m mutant) (open, counts bool) {
		known, tested := s.known.of(m)
		return !tested || s.again && known.survived(), !tested || known.Compiles
	}}
}

// take returns the next change to test. It returns false if enough changes were tested.
func (q *queue) take() (m mutant, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.next < len(q.of.mutants) && q.counted < q.of.area.count {
		m = q.of.mutants[q.next]
		q.next++
		open, counts := q.isOpen(m)
		if counts {
			q.counted++
		}
		if open {
			return m, true
		}
	}
	return mutant{}, false
}

// replace makes take return one more change, in place of a change that does not compile.
func (q *queue) replace() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.counted--
}

// testArea tests the changes of an area. Before that, it runs the tests without a change: they must pass.
func (s *session) testArea(ctx context.Context, of *sampled) error {
	if s.missing(of) == 0 {
		return nil
	}
	if err := s.testUnchanged(ctx, of); err != nil {
		return err
	}
	q, workers := s.queue(of), runtime.NumCPU()
	failed := make(chan error, workers)
	for range workers {
		go func() { failed <- s.work(ctx, q) }()
	}
	var errs []error
	for range workers {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}

// work tests changes until enough were tested.
func (s *session) work(ctx context.Context, q *queue) error {
	for m, ok := q.take(); ok; m, ok = q.take() {
		r, err := s.testOne(ctx, &q.of.area, m)
		if err != nil {
			return err
		}
		if !r.Compiles {
			q.replace()
		}
	}
	return nil
}

// testUnchanged returns an error if the tests of an area fail without a change.
func (s *session) testUnchanged(ctx context.Context, of *sampled) error {
	fmt.Fprintf(os.Stderr, "mutants: the tests of %s without a change\n", of.area.name)
	w, err := newWorkspace(s.root, nil)
	if err != nil {
		return err
	}
	defer w.remove()
	if failed, err := w.test(ctx, of.suites(s.root)); err != nil || failed != "" {
		return fmt.Errorf("without a change %s fails, so the tests say nothing: %w", failed, err)
	}
	return nil
}

// testOne tests one change, and stores the result.
func (s *session) testOne(ctx context.Context, a *area, m mutant) (r result, err error) {
	begun := time.Now()
	r = result{mutant: m, Area: a.name}
	w, err := newWorkspace(s.root, &m)
	if err != nil {
		return r, err
	}
	defer w.remove()
	if r.Compiles, err = w.compiles(ctx); err != nil {
		return r, err
	}
	if r.Compiles {
		if r.Explorations, err = w.test(ctx, a.explorations); err != nil {
			return r, err
		}
		if r.Others, err = w.test(ctx, a.othersOf(s.root, m.File)); err != nil {
			return r, err
		}
	}
	r.Seconds = int(time.Since(begun).Seconds())
	if err := s.known.add(r); err != nil {
		return r, err
	}
	s.say(&r)
	return r, nil
}

// say prints the progress of the session.
func (s *session) say(r *result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Compiles {
		return
	}
	s.ended++
	passed := time.Since(s.begun)
	left := time.Duration(float64(passed) / float64(s.ended) * float64(max(0, s.total-s.ended)))
	fmt.Fprintf(os.Stderr, "mutants: %d of %d, %s, about %s left: %s:%d: %s: %s\n", s.ended, s.total, passed.Round(time.Second), left.Round(time.Minute), r.File, r.Line, r.Kind, r.verdict())
}

// verdict returns which tests have noticed the change, as text.
func (r *result) verdict() string {
	switch {
	case r.survived():
		return "SURVIVES"
	case r.Explorations != "" && r.Others != "":
		return "both notice"
	case r.Explorations != "":
		return "explorations notice"
	}
	return "other tests notice"
}
