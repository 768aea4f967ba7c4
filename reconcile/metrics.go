package reconcile

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// metrics are those of one kind. A nil pointer keeps none.
type metrics struct {
	kind       string
	durations  *prometheus.HistogramVec
	results    *prometheus.CounterVec
	conditions *conditionMetric
}

func newMetrics(registry prometheus.Registerer, kind string) (*metrics, error) {
	m := &metrics{kind: kind}
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
	m.conditions, errs[2] = register(registry, newConditionMetric())
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
	return m.conditions.knows(shownObject{m.kind, name})
}

// show sets what the object's conditions say.
func (m *metrics) show(name types.NamespacedName, list []metav1.Condition) {
	if m != nil {
		m.conditions.set(shownObject{m.kind, name}, m, list)
	}
}

// forget is for an object that is gone.
func (m *metrics) forget(name types.NamespacedName) {
	if m != nil {
		m.conditions.forget(shownObject{m.kind, name}, m)
	}
}
