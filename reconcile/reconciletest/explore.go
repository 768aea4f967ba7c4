package reconciletest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// Explore plays the scenario without faults, and then once for every single fault at every single
// point of it. It fails the test with the shortest trace if the operator does not come to the
// same state, does not come to rest, or breaks another rule of the package.
func Explore(t *testing.T, s Scenario, options ...Option) *Report {
	t.Helper()
	report := ExploreQuietly(t, s, options...)
	if len(report.Failures) > 0 {
		t.Error(report)
	} else {
		t.Log(report)
	}
	return report
}

// ExploreQuietly is [Explore] that does not fail the test.
func ExploreQuietly(t *testing.T, s Scenario, options ...Option) *Report {
	t.Helper()
	settings := settings{depth: 1, limit: defaultLimit, seed: defaultSeed, replay: os.Getenv(replayVariable)}
	for _, o := range options {
		o(&settings)
	}
	e := &explorer{t: t, scenario: &s, settings: settings, report: &Report{test: t.Name(), Without: settings.without, Survived: map[FaultKind]int{}}}
	start := time.Now()
	e.explore()
	e.report.Elapsed = time.Since(start)
	return e.report
}

type explorer struct {
	t        *testing.T
	scenario *Scenario
	settings settings
	report   *Report
	baseline *result

	mu      sync.Mutex
	results []*result // of single faults, as far as a second one can follow
}

// validate says what cannot be explored.
func (e *explorer) validate() error {
	if err := e.settings.validate(); err != nil {
		return err
	}
	if err := e.scenario.validate(); err != nil {
		return err
	}
	if len(e.scenario.Actions) == 0 {
		return errors.New("the scenario has no Actions: without any, nothing happens to the operator")
	}
	return nil
}

func (e *explorer) explore() {
	if err := e.validate(); err != nil {
		e.report.fail(&result{err: err, trace: &trace{}})
		return
	}
	e.baseline = e.scenario.play(e.t, nil, nil)
	e.report.Runs++
	if e.baseline.err != nil {
		e.report.fail(e.baseline)
		return
	}
	if e.settings.replay != "" {
		e.replay()
		return
	}
	e.playAll(e.singleFaults())
	if e.settings.depth > 1 && len(e.report.Failures) == 0 {
		e.report.Seed = e.settings.seed
		e.playAll(e.pairs())
	}
}

func (e *explorer) replay() {
	faults, err := parseFaults(e.settings.replay)
	if err != nil {
		e.report.fail(&result{err: fmt.Errorf("replay: %w", err), trace: &trace{}})
		return
	}
	r := e.scenario.play(e.t, faults, e.baseline)
	e.report.Runs++
	if came := r.trace.faults(); r.err == nil && came < len(faults) {
		r.err = fmt.Errorf("replay: %d of %s did not come to be: the run took another way, or the scenario has changed since", len(faults)-came, plural(len(faults), "fault"))
	}
	e.report.add(r)
	e.report.Replayed = r.trace.String()
}

// playAll plays all runs, as many at a time as there are processors.
func (e *explorer) playAll(all [][]Fault) {
	jobs := make(chan []Fault)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for faults := range jobs {
				r := e.scenario.play(e.t, faults, e.baseline)
				e.mu.Lock()
				e.report.Runs++
				e.report.add(r)
				if len(faults) == 1 && e.settings.depth > 1 {
					e.results = append(e.results, &result{faults: faults, struck: r.struck, points: r.points})
				}
				e.mu.Unlock()
			}
		})
	}
	for _, faults := range all {
		jobs <- faults
	}
	close(jobs)
	workers.Wait()
}

// singleFaults gives every fault at every point of the run without faults.
func (e *explorer) singleFaults() [][]Fault {
	var all [][]Fault
	for i := range e.baseline.points {
		p := &e.baseline.points[i]
		for _, kind := range e.faultsAt(p) {
			all = append(all, []Fault{{kind, p.name, p.nth}})
		}
	}
	return all
}

// faultsAt gives what is to be tried at a point.
func (e *explorer) faultsAt(p *point) []FaultKind {
	return slices.DeleteFunc(p.faults(), func(kind FaultKind) bool { return slices.Contains(e.settings.without, kind) })
}

// faults gives what can strike at the point.
func (p *point) faults() []FaultKind {
	var kinds []FaultKind
	for _, k := range faultKinds {
		switch {
		case p.request == nil && k.request == nil && p.watched:
		case p.request == nil || k.request == nil || !k.request(p.request):
			continue
		case !p.next && (k.kind == CrashDowntime || k.kind == CrashDowntimeUnseen || k.kind == ConcurrentAction):
			continue
		case !p.watched && (k.kind == CrashUnseen || k.kind == CrashDowntimeUnseen):
			continue
		}
		kinds = append(kinds, k.kind)
	}
	return kinds
}

// pairs gives runs in which a second fault follows a first one: all, or a sample.
func (e *explorer) pairs() [][]Fault {
	slices.SortFunc(e.results, func(a, b *result) int { // they came as their runs ended
		return strings.Compare(formatFaults(a.faults), formatFaults(b.faults))
	})
	var all [][]Fault
	for _, first := range e.results {
		struck := false
		for i := range first.points {
			p := &first.points[i]
			if p.name == first.faults[0].At && p.nth == first.faults[0].Nth {
				struck = true
				continue
			}
			if !struck {
				continue
			}
			for _, kind := range e.faultsAt(p) {
				all = append(all, []Fault{first.faults[0], {kind, p.name, p.nth}})
			}
		}
	}
	e.report.Pairs = len(all)
	if len(all) <= e.settings.limit {
		return all
	}
	random := rand.New(rand.NewPCG(e.settings.seed, 0)) //nolint:gosec // a sample that can be repeated
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:e.settings.limit]
}

func (s *Scenario) serverOptions() []memoryserver.Option {
	if len(s.CRDs) == 0 {
		return nil
	}
	return []memoryserver.Option{memoryserver.CRDs(s.CRDs...)}
}
