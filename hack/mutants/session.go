package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// session tests the changes of a sample that have no result yet.
type session struct {
	root    string
	known   *results
	workers int
	again   bool
	begun   time.Time

	mu    sync.Mutex // guards what follows
	ended int
	total int
}

// test tests what is left of the sample, area by area. A change that does not compile is replaced by the next one.
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
func (s *session) missing(of *sampled) int {
	counted, open := 0, 0
	for _, m := range of.mutants {
		if counted == of.count {
			break
		}
		known, tested := s.known.of(m)
		if tested && !known.Compiles {
			continue
		}
		if counted++; !tested || s.again && known.survived() {
			open++
		}
	}
	return open
}

// testArea tests the changes of an area, after its tests without a change: they must pass.
func (s *session) testArea(ctx context.Context, of *sampled) error {
	if s.missing(of) == 0 {
		return nil
	}
	if err := s.testUnchanged(ctx, &of.area); err != nil {
		return err
	}
	var mu sync.Mutex // guards what follows
	next, counted := 0, 0
	take := func() (m mutant, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		for ; next < len(of.mutants) && counted < of.count; next++ {
			known, tested := s.known.of(of.mutants[next])
			switch {
			case tested && !known.Compiles:
			case tested && !(s.again && known.survived()):
				counted++
			default:
				counted++
				next++
				return of.mutants[next-1], true
			}
		}
		return mutant{}, false
	}
	failed := make(chan error, s.workers)
	for range s.workers {
		go func() {
			failed <- func() error {
				for m, ok := take(); ok; m, ok = take() {
					r, err := s.testOne(ctx, &of.area, m)
					if err != nil {
						return err
					}
					if !r.Compiles {
						mu.Lock()
						counted--
						mu.Unlock()
					}
				}
				return nil
			}()
		}()
	}
	var first error
	for range s.workers {
		if err := <-failed; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// testUnchanged returns an error if the tests of an area fail without a change.
func (s *session) testUnchanged(ctx context.Context, a *area) error {
	fmt.Fprintf(os.Stderr, "mutants: the tests of %s without a change\n", a.name)
	w, err := newWorkspace(s.root, nil)
	if err != nil {
		return err
	}
	defer w.remove()
	for _, suites := range [][]suite{a.explorations, a.others} {
		if failed, err := w.test(ctx, suites); err != nil || failed != "" {
			return fmt.Errorf("without a change %s fails, so the tests say nothing: %w", failed, err)
		}
	}
	return nil
}

// testOne tests one change, and keeps the result.
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
		if r.Others, err = w.test(ctx, a.others); err != nil {
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

// say prints how far the session is.
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

// verdict says who has noticed the change.
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
