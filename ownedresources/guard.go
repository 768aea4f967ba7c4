package ownedresources

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/opblocks/opblocks/internal/compare"
)

const (
	reasonWriteLoop = "WriteLoop"

	// What counts is the same wanted object written again for the same fields, within loopGap of
	// the time before.
	loopGap    = time.Minute
	loopWrites = 5 // are repaired at once; then the guard sets in
	loopFirst  = 2 * time.Second
	loopLast   = 5 * time.Minute
)

// guard slows down where an object is written again and again although what is wanted stays
// the same: somebody else, another controller or an admission plug-in, changes it back.
type guard struct {
	clock   clock.PassiveClock
	metrics *metrics
	mu      sync.Mutex
	byUID   map[types.UID]*loop
}

type loop struct {
	sum    sum
	paths  string
	writes int
	last   time.Time
	labels prometheus.Labels // of the metric, while the guard holds
}

func newGuard(c clock.PassiveClock, m *metrics) *guard {
	return &guard{clock: c, metrics: m, byUID: map[types.UID]*loop{}}
}

// hold gives how long the next write has to wait, or 0. It reports once a loop that it begins.
func (g *guard) hold(w *wanted, uid types.UID, paths string) (wait time.Duration, begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.byUID[uid]
	if l == nil {
		return 0, false
	}
	delay := l.delay()
	now := g.clock.Now()
	if l.sum != w.sum || l.paths != paths || now.Sub(l.last) >= delay+loopGap {
		g.drop(uid)
		return 0, false
	}
	if wait = delay - now.Sub(l.last); wait <= 0 {
		return 0, false
	}
	if begins = l.labels == nil; begins {
		l.labels = prometheus.Labels{"kind": w.kind.gvk.Kind, "namespace": w.object.GetNamespace(), "name": w.object.GetName(), "path": paths}
		g.metrics.loops.With(l.labels).Set(1)
	}
	return wait, begins
}

// delay is 0 for the first writes, then twice as long each time.
func (l *loop) delay() time.Duration {
	if l.writes <= loopWrites {
		return 0
	}
	return min(loopLast, loopFirst<<min(l.writes-loopWrites-1, 10))
}

// note counts a write of some fields.
func (g *guard) note(w *wanted, uid types.UID, paths string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.byUID[uid]
	if l == nil || l.sum != w.sum || l.paths != paths {
		g.drop(uid)
		l = &loop{sum: w.sum, paths: paths}
		g.byUID[uid] = l
	}
	l.writes++
	l.last = g.clock.Now()
}

// forget is for an object that is gone.
func (g *guard) forget(uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(uid)
}

func (g *guard) drop(uid types.UID) {
	if l := g.byUID[uid]; l != nil && l.labels != nil {
		g.metrics.loops.Delete(l.labels)
	}
	delete(g.byUID, uid)
}

// pathsOf names the fields, without values: those may be secret.
func pathsOf(differences []compare.Difference) string {
	if len(differences) == 0 {
		return "metadata"
	}
	const most = 3
	var paths []string
	for _, d := range differences {
		if len(paths) == most {
			paths = append(paths, "…")
			break
		}
		paths = append(paths, d.Path)
	}
	return strings.Join(paths, ", ")
}
