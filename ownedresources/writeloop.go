package ownedresources

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/eventnote"
)

const (
	reasonWriteLoop = "WriteLoop"

	// writeLoopGap ends a loop: only writes that follow each other within this time, beyond the delay, belong to one.
	writeLoopGap = time.Minute
	// writeLoopFree is how many writes may precede one that is made at once. Later ones are delayed.
	writeLoopFree     = 5
	writeLoopMinDelay = 2 * time.Second
	writeLoopMaxDelay = 5 * time.Minute
)

// writeLoop counts writes of the same desired object for the same fields: another controller or an admission plug-in
// changes them back each time.
type writeLoop struct {
	sum    sum
	paths  string
	writes int
	last   time.Time
	labels prometheus.Labels // of the metric; nil until a write is delayed
}

func (l *writeLoop) isOf(d *desired, paths string) bool { return l.sum == d.sum && l.paths == paths }

// delay is the time between the last write and the next: 0 at first, then twice as long each time.
func (l *writeLoop) delay() time.Duration {
	if l.writes <= writeLoopFree {
		return 0
	}
	return min(writeLoopMaxDelay, writeLoopMinDelay<<min(l.writes-writeLoopFree-1, 10))
}

// slowDown returns a [WaitingError] while the next write of the object has to wait, and nil if it may be sent now.
func (a *applier) slowDown(d *desired, live client.Object, paths string) error {
	wait, begins := a.children.delayWrite(d, live.GetUID(), paths, a.clock.Now())
	if wait == 0 {
		return nil
	}
	message := fmt.Sprintf("%s is changed back again and again by another writer, so it is applied less often: %s", d, paths)
	if begins && a.recorder != nil {
		a.recorder.Eventf(d.owner.object, live, corev1.EventTypeWarning, reasonWriteLoop, "Apply", "%s", eventnote.Cut(message))
	}
	return &WaitingError{reason: reasonWriteLoop, message: message, after: wait}
}

// delayWrite returns how long the next write has to wait, 0 if not at all. It reports once per loop that the delays begin.
func (m *childMemory) delayWrite(d *desired, uid types.UID, paths string, now time.Time) (wait time.Duration, begins bool) {
	m.change(uid, func(child *childDetails) {
		l := child.loop
		if l == nil {
			return
		}
		delay := l.delay()
		if !l.isOf(d, paths) || now.Sub(l.last) >= delay+writeLoopGap {
			m.dropLoop(child)
			return
		}
		if wait = max(0, delay-now.Sub(l.last)); wait == 0 {
			return
		}
		if begins = l.labels == nil; begins {
			l.labels = prometheus.Labels{"kind": d.kind.gvk.Kind, "namespace": d.object.GetNamespace(), "name": d.object.GetName(), "path": paths}
			m.metrics.loops.With(l.labels).Set(1)
		}
	})
	return wait, begins
}

// countWrite counts a write of these paths.
func (m *childMemory) countWrite(d *desired, uid types.UID, paths string, now time.Time) {
	m.change(uid, func(child *childDetails) {
		if child.loop == nil || !child.loop.isOf(d, paths) {
			m.dropLoop(child)
			child.loop = &writeLoop{sum: d.sum, paths: paths}
		}
		child.loop.writes++
		child.loop.last = now
	})
}

// dropLoop ends a loop, if there is one, and removes its metric.
func (m *childMemory) dropLoop(child *childDetails) {
	if child.loop != nil && child.loop.labels != nil {
		m.metrics.loops.Delete(child.loop.labels)
	}
	child.loop = nil
}

// pathsOf lists the fields without their values, which may be secret.
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
