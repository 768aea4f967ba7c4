package reconcile

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/writeloop"
)

// metrics has the metrics of one reconciler. The methods of a nil *metrics do nothing.
type metrics struct {
	kind       string
	durations  *prometheus.HistogramVec
	results    *prometheus.CounterVec
	conditions *conditionCollector
	loops      *prometheus.GaugeVec // the same metric as in package ownedresources

	// controller-runtime counts reconciles that return an error in these counters. This package does not return the errors of its
	// steps, so the reconciler counts them itself.
	errors, terminal prometheus.Counter
}

func newMetrics(registry prometheus.Registerer, kind string) (*metrics, error) {
	m := &metrics{kind: kind}
	var errs [4]error
	m.durations, errs[0] = register(registry, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "opblocks_step_duration_seconds",
		Help:    "How long a step took, by the kind of the object and the step.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 4, 9), // 0.1 ms to 6.5 s
	}, []string{"kind", "step"}))
	m.results, errs[1] = register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "opblocks_step_results_total",
		Help: "The number of runs of a step, by the kind of the object, the step and the result: " + strings.Join(resultsOfSteps(), ", ") + ".",
	}, []string{"kind", "step", "result"}))
	m.conditions, errs[2] = register(registry, newConditionCollector())
	m.loops, errs[3] = register(registry, writeloop.NewMetric())
	m.errors = controllerCounter(registry, "controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller", kind)
	m.terminal = controllerCounter(registry, "controller_runtime_terminal_reconcile_errors_total", "Total number of terminal reconciliation errors per controller", kind)
	return m, errors.Join(errs[:]...)
}

// controllerCounter returns controller-runtime's counter of this name, for the controller of a kind. Clusters have alerts for it, which
// then also see the failures of steps. The label is the kind in lower case, which controller-runtime uses as the name of the controller. If
// controller-runtime's counter has another description than help, it cannot be shared. Then controllerCounter returns a counter that is not
// registered.
func controllerCounter(registry prometheus.Registerer, name, help, kind string) prometheus.Counter {
	vector, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"controller"}))
	if err != nil {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name})
	}
	return vector.WithLabelValues(strings.ToLower(kind))
}

// pass counts a pass that has failed, as controller-runtime counts a reconcile that returns an error.
func (m *metrics) pass(worst state) {
	end := worst.ending()
	if m == nil || !end.isFault {
		return
	}
	if m.errors.Inc(); end.lasts {
		m.terminal.Inc()
	}
}

// register registers a collector and returns it. If an equal one is registered already, register returns that one: the reconcilers of a
// process share collectors.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return known.ExistingCollector.(C), nil
	}
	return c, err
}

// step counts a run of a step and observes its duration.
func (m *metrics) step(name string, start time.Time, o *outcome) {
	if m == nil {
		return
	}
	m.durations.WithLabelValues(m.kind, name).Observe(time.Since(start).Seconds())
	m.results.WithLabelValues(m.kind, name, o.state.ending().label).Inc()
}

// loopsOrNil returns the metric of write loops. It returns nil if m is nil.
func (m *metrics) loopsOrNil() *prometheus.GaugeVec {
	if m == nil {
		return nil
	}
	return m.loops
}

// hasConditions reports whether the metrics show the conditions of the object already. If m is nil, it returns true, because
// nothing has to be set.
func (m *metrics) hasConditions(name types.NamespacedName) bool {
	return m == nil || m.conditions.has(objectKey{m.kind, name})
}

// setConditions sets the conditions of an object. No two of them may have the same type.
func (m *metrics) setConditions(name types.NamespacedName, list []metav1.Condition) {
	if m != nil {
		m.conditions.set(objectKey{m.kind, name}, m, list)
	}
}

// forget drops the conditions of an object.
func (m *metrics) forget(name types.NamespacedName) {
	if m != nil {
		m.conditions.forget(objectKey{m.kind, name}, m)
	}
}

// conditionCollector is the metric of the conditions of objects. It makes its series whenever it is read. A GaugeVec
// would keep them in memory, which would take as much memory as the objects.
type conditionCollector struct {
	desc     *prometheus.Desc
	mu       sync.Mutex
	byObject map[objectKey]objectConditions
	types    []string // the types of all conditions, each once
}

type objectKey struct {
	kind string
	name types.NamespacedName
}

// objectConditions has the conditions of an object, and the metrics of the reconciler that has set them. The
// object of another reconciler may have the same key, if its kind has the same name in another group.
type objectConditions struct {
	setBy *metrics
	all   []conditionValue
}

// conditionValue is one condition. Every object has several, so the struct is small.
type conditionValue struct {
	conditionType uint32 // the index of its type in types
	value         int8
}

var _ prometheus.Collector = &conditionCollector{}

func newConditionCollector() *conditionCollector {
	return &conditionCollector{
		desc: prometheus.NewDesc("opblocks_condition",
			"A condition of an object: 1 for True, 0 for False, -1 for Unknown; absent when the object has none of that type.",
			[]string{"kind", "namespace", "name", "type"}, nil),
		byObject: map[objectKey]objectConditions{},
	}
}

// Describe implements [prometheus.Collector].
func (c *conditionCollector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements [prometheus.Collector].
func (c *conditionCollector) Collect(series chan<- prometheus.Metric) {
	c.mu.Lock()
	all, types := maps.Clone(c.byObject), c.types // copied, so that passes do not have to wait while the series are read
	c.mu.Unlock()
	for object, conditions := range all {
		for _, v := range conditions.all {
			series <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(v.value),
				object.kind, object.name.Namespace, object.name.Name, types[v.conditionType])
		}
	}
}

func (c *conditionCollector) has(object objectKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.byObject[object]
	return ok
}

func (c *conditionCollector) set(object objectKey, by *metrics, list []metav1.Condition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make([]conditionValue, 0, len(list))
	for _, condition := range list {
		values = append(values, conditionValue{c.typeIndex(condition.Type), valueOf(condition.Status)})
	}
	c.byObject[object] = objectConditions{by, values}
}

// typeIndex returns the index of a condition type in types. The caller holds the lock.
func (c *conditionCollector) typeIndex(conditionType string) uint32 {
	i := slices.Index(c.types, conditionType)
	if i < 0 {
		i = len(c.types)
		c.types = append(c.types, conditionType)
	}
	return uint32(i)
}

// forget drops the conditions of an object, if the reconciler of these metrics has set them.
func (c *conditionCollector) forget(object objectKey, by *metrics) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byObject[object].setBy == by {
		delete(c.byObject, object)
	}
}

func valueOf(status metav1.ConditionStatus) int8 {
	switch status {
	case metav1.ConditionTrue:
		return 1
	case metav1.ConditionFalse:
		return 0
	}
	return -1
}
