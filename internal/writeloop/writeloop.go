// Package writeloop slows down writes that another writer undoes again and again.
package writeloop

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reason is the reason of conditions and events about a write that is delayed because another writer undoes it.
const Reason = "WriteLoop"

const (
	// Gap is a time without a write. If nothing is written for the current delay plus Gap, a loop ends.
	Gap = time.Minute
	// Free is the number of writes of a loop after which only one more write is made at once. Later writes are delayed.
	Free = 5
	// MinDelay is the first delay.
	MinDelay = 2 * time.Second
	// MaxDelay is the longest delay.
	MaxDelay = 5 * time.Minute
)

// NewMetric returns the metric about loops. All packages that count loops register it, and share one.
func NewMetric() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "opblocks_write_loop",
		Help: "1 for an object whose writes another writer undoes again and again, so that it is written less often.",
	}, []string{"kind", "namespace", "name", "path"})
}

// Loop counts writes of the same content to the same object. If the content changes, the caller calls [Loop.End] and drops the Loop. The
// zero value has counted no write.
type Loop struct {
	writes int
	last   time.Time
	labels prometheus.Labels // the labels of the metric; nil until a write is delayed
}

// Count counts a write.
func (l *Loop) Count(now time.Time) {
	l.writes++
	l.last = now
}

// Touch keeps the loop from ending, as a write would, and counts no write.
func (l *Loop) Touch(now time.Time) { l.last = now }

// Delay returns the time that has to pass between the last write and the next: 0 at first, then twice as long each time, up to MaxDelay.
func (l *Loop) Delay() time.Duration {
	if l.writes <= Free {
		return 0
	}
	return min(MaxDelay, MinDelay<<min(l.writes-Free-1, 10))
}

// HasEnded reports whether nothing was written for so long that the next write begins a new loop.
func (l *Loop) HasEnded(now time.Time) bool { return now.Sub(l.last) >= l.Delay()+Gap }

// Wait returns how long the next write has to wait. 0 means that it need not wait. The first time that a write has to wait, begins is true,
// and Wait sets the metric with these labels.
func (l *Loop) Wait(now time.Time, metric *prometheus.GaugeVec, kind, namespace, name, path string) (wait time.Duration, begins bool) {
	if wait = max(0, l.Delay()-now.Sub(l.last)); wait == 0 {
		return 0, false
	}
	if begins = l.labels == nil; begins {
		l.labels = prometheus.Labels{"kind": kind, "namespace": namespace, "name": name, "path": path}
		if metric != nil {
			metric.With(l.labels).Set(1)
		}
	}
	return wait, begins
}

// End removes the metric. Call it before the loop is dropped.
func (l *Loop) End(metric *prometheus.GaugeVec) {
	if l.labels != nil && metric != nil {
		metric.Delete(l.labels)
	}
	l.labels = nil
}
