package external

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile"
)

// result is what a call to the API has returned: a label of the metrics.
type result string

const (
	resultSucceeded   result = "succeeded"
	resultNotFound    result = "not_found"
	resultRefused     result = "refused"
	resultThrottled   result = "throttled"
	resultUnreachable result = "unreachable"
	resultWaiting     result = "waiting"
	resultFailed      result = "failed"
)

// resultOf returns the result of a call. late is whether its timeout has passed.
func resultOf(err error, late bool) result {
	switch {
	case err == nil:
		return resultSucceeded
	case is[*panicError](err):
		return resultFailed
	case late, is[*unreachableError](err), isNetwork(err):
		return resultUnreachable
	case is[*throttledError](err):
		return resultThrottled
	case isRefused(err), errors.Is(err, ErrExists):
		return resultRefused
	case errors.Is(err, ErrNotFound):
		return resultNotFound
	case is[reconcile.Waiter](err):
		return resultWaiting
	}
	return resultFailed
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// metrics has the metrics of all steps of a process. The methods of a nil pointer do nothing.
type metrics struct {
	calls     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	states    *stateCollector
}

// newMetrics registers the metrics, or returns those that another step has registered.
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

// register registers a collector, or returns the one that is registered already.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return known.ExistingCollector.(C), nil
	}
	return c, err
}

// call counts a call that began at a time. A call that ends because the operator ends is not counted.
func (m *metrics) call(ctx context.Context, s *state, f function, r result, begin time.Time) {
	if m == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	kind, verb := s.kindName(), strings.ToLower(string(f))
	m.durations.WithLabelValues(kind, s.name, verb).Observe(time.Since(begin).Seconds())
	m.calls.WithLabelValues(kind, s.name, verb, string(r)).Inc()
}

// state is what a step knows of servers and of objects that wait. It does not depend on the types of the step.
type state struct {
	gate      gate
	abandoned abandoned
	waits     waits
	now       func() time.Time
	name      string                 // the name of the step
	kind      atomic.Pointer[string] // the kind of the objects; nil before the first pass
}

func (s *state) kindName() string {
	if kind := s.kind.Load(); kind != nil {
		return *kind
	}
	return ""
}

// waits has what each object waits for.
type waits struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]string
	counts map[string]int // the number of objects, by what they wait for
}

// What objects wait for: a label of the metrics.
const (
	waitsForQuota       = "quota"        // the quota of calls is used up
	waitsForThrottling  = "throttling"   // the API has asked to wait
	waitsForServer      = "unreachable"  // the server gives no answer
	waitsForConcurrency = "concurrency"  // the server handles as many objects as it may
	waitsForReturn      = "not_returned" // a call has not returned although its context has ended
)

// set notes what an object waits for. It is empty if the object does not wait.
func (w *waits) set(name types.NamespacedName, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if was := w.byName[name]; was != "" {
		delete(w.byName, name)
		if w.counts[was]--; w.counts[was] == 0 {
			delete(w.counts, was)
		}
	}
	if what == "" {
		return
	}
	if w.byName == nil {
		w.byName, w.counts = map[types.NamespacedName]string{}, map[string]int{}
	}
	w.byName[name] = what
	w.counts[what]++
}

func (w *waits) count() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}

// stateCollector collects the states of all steps of a process. A step that nobody has any more is not among them.
type stateCollector struct {
	waiting, spared, notReturned *prometheus.Desc

	mu     sync.Mutex
	states map[weak.Pointer[state]]bool
}

var _ prometheus.Collector = &stateCollector{}

func newStateCollector() *stateCollector {
	of := []string{"kind", "step"}
	return &stateCollector{
		waiting: prometheus.NewDesc("opblocks_external_waiting_objects",
			"The number of objects whose last pass could not call the API outside of the cluster, or was asked to wait, by the reason: quota, throttling, unreachable, concurrency, not_returned.",
			append(of, "reason"), nil),
		spared: prometheus.NewDesc("opblocks_external_spared_servers",
			"The number of servers outside of the cluster that could not be reached, and are called only now and then.", of, nil),
		notReturned: prometheus.NewDesc("opblocks_external_calls_not_returned",
			"The number of calls that have not returned although their context has ended: the function does not obey it.", of, nil),
		states: map[weak.Pointer[state]]bool{},
	}
}

// add adds the state of a step. Adding it again changes nothing.
func (c *stateCollector) add(s *state) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := weak.Make(s); !c.states[p] {
		c.states[p] = true
		runtime.AddCleanup(s, c.forget, p)
	}
}

func (c *stateCollector) forget(p weak.Pointer[state]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, p)
}

// all returns the states of the steps that have had a pass, by kind and name of the step.
func (c *stateCollector) all() map[[2]string][]*state {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[[2]string][]*state{}
	for p := range c.states {
		if s := p.Value(); s != nil && s.kindName() != "" {
			key := [2]string{s.kindName(), s.name}
			all[key] = append(all[key], s)
		}
	}
	return all
}

// Describe implements [prometheus.Collector].
func (c *stateCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- c.waiting
	descs <- c.spared
	descs <- c.notReturned
}

// Collect implements [prometheus.Collector]. Steps of one kind and name, such as in two managers, are one series.
func (c *stateCollector) Collect(series chan<- prometheus.Metric) {
	for of, states := range c.all() {
		spared, notReturned, waiting := 0, 0, map[string]int{}
		for _, s := range states {
			spared += s.gate.spared(s.now())
			notReturned += s.abandoned.count()
			for reason, n := range s.waits.count() {
				waiting[reason] += n
			}
		}
		gauge := func(desc *prometheus.Desc, n int, more ...string) {
			series <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), append(of[:], more...)...)
		}
		gauge(c.spared, spared)
		gauge(c.notReturned, notReturned)
		for _, reason := range slices.Sorted(maps.Keys(waiting)) {
			gauge(c.waiting, waiting[reason], reason)
		}
	}
}
