// Package calls makes the calls of package external to an API outside of the cluster. It decides which passes may call now (quota, a server
// that asks to wait or cannot be reached), bounds each call, tells what its error means, and counts. It knows neither records nor the kinds of
// objects.
package calls

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// Calls is what a step knows of servers, of calls, and of objects that wait.
type Calls struct {
	gate      gate
	abandoned abandoned
	waits     waits
	metrics   *metrics // nil without a manager
	now       func() time.Time
	timeout   time.Duration
	name      string                 // the name of the step
	kind      atomic.Pointer[string] // the kind of the objects; nil before the first pass
}

// New returns the calls of a step, which has not made any. Concurrency limits the passes at one server. Without a limit it is 0, and the quota is nil.
func New(quota *rate.Limiter, concurrency int, timeout time.Duration, now func() time.Time) *Calls {
	return &Calls{gate: gate{quota: quota, concurrency: concurrency}, timeout: timeout, now: now}
}

// SetName sets the name of the step in the metrics.
func (c *Calls) SetName(name string) { c.name = name }

// Name returns the name of the step.
func (c *Calls) Name() string { return c.name }

// SetKind sets the kind of the objects in the metrics. The first one that is not empty counts.
func (c *Calls) SetKind(kind string) {
	if kind != "" && c.kind.Load() == nil {
		c.kind.Store(&kind)
	}
}

func (c *Calls) kindName() string {
	if kind := c.kind.Load(); kind != nil {
		return *kind
	}
	return ""
}

// Measure registers the metrics.
func (c *Calls) Measure(registry prometheus.Registerer) (err error) {
	if c.metrics, err = newMetrics(registry); err == nil {
		c.metrics.states.add(c)
	}
	return err
}

// EndWait notes that an object does not wait.
func (c *Calls) EndWait(object types.NamespacedName) {
	c.waits.set(object, "")
	c.gate.forget(object)
}

// NotReturned returns the number of calls that have not returned although their context has ended.
func (c *Calls) NotReturned() int { return c.abandoned.count() }
