package calls

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/prometheus/client_golang/prometheus"
)

// stateCollector collects the metrics that show what all steps of a process wait for. It forgets a step that the
// program does not use any more.
type stateCollector struct {
	waiting, spared, notReturned *prometheus.Desc

	mu     sync.Mutex
	states map[weak.Pointer[Calls]]bool
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
		states: map[weak.Pointer[Calls]]bool{},
	}
}

// add adds the state of a step. Adding it again changes nothing.
func (c *stateCollector) add(s *Calls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := weak.Make(s); !c.states[p] {
		c.states[p] = true
		runtime.AddCleanup(s, c.forget, p)
	}
}

func (c *stateCollector) forget(p weak.Pointer[Calls]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.states, p)
}

// all returns the states of the steps that have reconciled an object, by the kind and the name of the step.
func (c *stateCollector) all() map[[2]string][]*Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := map[[2]string][]*Calls{}
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

// Collect implements [prometheus.Collector]. If several steps have the same kind and name, for example in two
// managers, it adds them up in one series.
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
