// Package calls makes the calls of package external to an API outside of the cluster. It decides which passes may call the API now: that
// depends on the quota, and on servers that ask to wait or cannot be reached. It limits the time of each call, classifies its error, and
// counts it. It does not know records or kinds of objects.
package calls

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
)

// Calls has the state of a step: its servers, its running calls, and the objects that wait.
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

// New returns the Calls of a new step. concurrency limits how many passes call one server at the same time; 0 means no limit. A
// nil quota means no limit.
func New(quota *rate.Limiter, concurrency int, timeout time.Duration, now func() time.Time) *Calls {
	return &Calls{gate: gate{quota: quota, concurrency: concurrency}, timeout: timeout, now: now}
}

// SetName sets the name of the step in the metrics.
func (c *Calls) SetName(name string) { c.name = name }

// Name returns the name of the step.
func (c *Calls) Name() string { return c.name }

// SetKind sets the kind of the objects in the metrics. After the first call with a kind that is not empty, later
// calls have no effect.
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

// EndWait records that an object does not wait any more.
func (c *Calls) EndWait(object types.NamespacedName) {
	c.waits.set(object, "")
	c.gate.forget(object)
}

// NotReturned returns the number of calls that have not returned although their context has ended.
func (c *Calls) NotReturned() int { return c.abandoned.count() }
