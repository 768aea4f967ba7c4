package calls

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics has the metrics of all steps of a process. The methods of a nil *metrics do nothing.
type metrics struct {
	calls     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	states    *stateCollector
}

// newMetrics registers the metrics. If another step has registered them, it returns the registered
// ones.
func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{}
	var errs [3]error
	m.calls, errs[0] = register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "opblocks_external_calls_total",
		Help: "The number of calls to APIs outside of the cluster, by the kind of the object, the step, the verb (observe, create, update, delete) and the result: succeeded, not_found, refused, throttled, unreachable, waiting, failed.",
	}, []string{"kind", "step", "verb", "result"}))
	m.durations, errs[1] = register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "opblocks_external_call_duration_seconds",
		Help:    "How long calls to APIs outside of the cluster took, by the kind of the object, the step and the verb.",
		Buckets: prometheus.ExponentialBuckets(0.001, 4, 8), // 1 ms to 16 s
	}, []string{"kind", "step", "verb"}))
	m.states, errs[2] = register(registry, newStateCollector())
	return m, errors.Join(errs[:]...)
}

// register registers a collector. If it is registered already, register returns the registered one.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return known.ExistingCollector.(C), nil
	}
	return c, err
}

// call counts a call, and observes its duration since begin. A call that ends because the operator stops is not
// counted.
func (m *metrics) call(ctx context.Context, c *Calls, f Function, r result, begin time.Time) {
	if m == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	kind, verb := c.kindName(), strings.ToLower(string(f))
	m.durations.WithLabelValues(kind, c.name, verb).Observe(time.Since(begin).Seconds())
	m.calls.WithLabelValues(kind, c.name, verb, string(r)).Inc()
}
