package reconcile

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/conditions"
)

// metrics are those of one kind. A nil pointer keeps none.
type metrics struct {
	kind       string
	durations  *prometheus.HistogramVec
	results    *prometheus.CounterVec
	conditions *prometheus.GaugeVec
	mu         sync.Mutex
	shown      map[types.NamespacedName][]string // the condition types of an object
}

func newMetrics(registry prometheus.Registerer, kind string) (*metrics, error) {
	m := &metrics{kind: kind, shown: map[types.NamespacedName][]string{}}
	var errs [3]error
	m.durations, errs[0] = register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "opblocks_step_duration_seconds",
		Help:    "How long a step took, by the kind of the object and the step.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9), // 0.1 ms to 6.5 s
	}, []string{"kind", "step"}))
	m.results, errs[1] = register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "opblocks_step_results_total",
		Help: "What became of steps, by the kind of the object, the step and the result: succeeded, waiting, conflicted, failed, terminal.",
	}, []string{"kind", "step", "result"}))
	m.conditions, errs[2] = register(registry, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "opblocks_condition",
		Help: "A condition of an object: 1 for True, 0 for False, -1 for Unknown; absent when the object has none of that type.",
	}, []string{"kind", "namespace", "name", "type"}))
	return m, errors.Join(errs[:]...)
}

// register gives the collector that is there already: the reconcilers of a process share them.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return known.ExistingCollector.(C), nil
	}
	return c, err
}

func (m *metrics) step(name string, start time.Time, o *outcome) {
	if m == nil {
		return
	}
	m.durations.WithLabelValues(m.kind, name).Observe(time.Since(start).Seconds())
	m.results.WithLabelValues(m.kind, name, o.state.String()).Inc()
}

// knows reports whether the object's conditions are shown, or that there are no metrics.
func (m *metrics) knows(name types.NamespacedName) bool {
	if m == nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, known := m.shown[name]
	return known
}

// show sets what the object's conditions say. A nil list says nothing.
func (m *metrics) show(name types.NamespacedName, list conditions.List) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name)
	var shown []string
	if list != nil {
		for _, c := range list.All() {
			m.conditions.WithLabelValues(m.kind, name.Namespace, name.Name, c.Type).Set(level(c.Status))
			shown = append(shown, c.Type)
		}
	}
	m.shown[name] = shown
}

// forget is for an object that is gone.
func (m *metrics) forget(name types.NamespacedName) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name)
}

func (m *metrics) drop(name types.NamespacedName) {
	for _, t := range m.shown[name] {
		m.conditions.DeleteLabelValues(m.kind, name.Namespace, name.Name, t)
	}
	delete(m.shown, name)
}

func level(status metav1.ConditionStatus) float64 {
	switch status {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	}
	return -1
}
