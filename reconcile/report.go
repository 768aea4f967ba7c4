package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/eventnote"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/writeloop"
)

// metrics has the metrics of one reconciler. The methods of a nil pointer do nothing.
type metrics struct {
	kind       string
	durations  *prometheus.HistogramVec
	results    *prometheus.CounterVec
	conditions *conditionCollector
	loops      *prometheus.GaugeVec // package ownedresources has it too

	// What controller-runtime counts of passes that return an error, and passes of this package return none.
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
		Help: "The number of runs of a step, by the kind of the object, the step and the result: succeeded, waiting, conflicted, failed, stalled.",
	}, []string{"kind", "step", "result"}))
	m.conditions, errs[2] = register(registry, newConditionCollector())
	m.loops, errs[3] = register(registry, writeloop.NewMetric())
	m.errors = controllerCounter(registry, "controller_runtime_reconcile_errors_total", "Total number of reconciliation errors per controller", kind)
	m.terminal = controllerCounter(registry, "controller_runtime_terminal_reconcile_errors_total", "Total number of terminal reconciliation errors per controller", kind)
	return m, errors.Join(errs[:]...)
}

// controllerCounter returns a counter of controller-runtime, so that the alerts that clusters have for it see the failures of passes too. It
// has the name that controller-runtime gives to the controller of a kind. If a version of controller-runtime describes the counter in
// other words, it cannot be shared, and counts for nobody.
func controllerCounter(registry prometheus.Registerer, name, help, kind string) prometheus.Counter {
	vector, err := register(registry, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"controller"}))
	if err != nil {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name})
	}
	return vector.WithLabelValues(strings.ToLower(kind))
}

// pass counts a pass that has failed, as controller-runtime counts one that returns an error.
func (m *metrics) pass(worst state) {
	if m == nil || worst < failed {
		return
	}
	if m.errors.Inc(); worst == stalled {
		m.terminal.Inc()
	}
}

// register registers a collector, or returns the one that is registered already: the reconcilers of a process share them.
func register[C prometheus.Collector](registry prometheus.Registerer, c C) (C, error) {
	err := registry.Register(c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return known.ExistingCollector.(C), nil
	}
	return c, err
}

// step observes a run of a step.
func (m *metrics) step(name string, start time.Time, o *outcome) {
	if m == nil {
		return
	}
	m.durations.WithLabelValues(m.kind, name).Observe(time.Since(start).Seconds())
	m.results.WithLabelValues(m.kind, name, o.state.String()).Inc()
}

// loopsOrNil returns the metric of write loops, or nil without metrics.
func (m *metrics) loopsOrNil() *prometheus.GaugeVec {
	if m == nil {
		return nil
	}
	return m.loops
}

// hasConditions reports whether nothing has to be set: the conditions of the object are there, or m is nil.
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

// conditionCollector collects the conditions of objects. It makes a series when it is read: a GaugeVec, which keeps its
// series, would take as much memory as the objects.
type conditionCollector struct {
	desc     *prometheus.Desc
	mu       sync.Mutex
	byObject map[objectKey]objectConditions
	types    []string // the types of conditions that there are
}

type objectKey struct {
	kind string
	name types.NamespacedName
}

// objectConditions are the conditions of an object that one reconciler has set. Another reconciler may have an object
// with the same key, if its kind has the same name in another group.
type objectConditions struct {
	setBy *metrics
	all   []conditionValue
}

// conditionValue is one condition. There is one for each condition of every object, so it is small.
type conditionValue struct {
	conditionType uint32 // the index of its type
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
	all, types := maps.Clone(c.byObject), c.types // so that passes do not wait for the reader of the series
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

// typeIndex returns the index of a type of conditions. The caller holds the lock.
func (c *conditionCollector) typeIndex(conditionType string) uint32 {
	i := slices.Index(c.types, conditionType)
	if i < 0 {
		i = len(c.types)
		c.types = append(c.types, conditionType)
	}
	return uint32(i)
}

// forget drops the conditions of an object, unless another reconciler has set them.
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

// Eventf emits an event from a step. It takes the arguments of an EventRecorder's Eventf in
// k8s.io/client-go/tools/events, except two that the pass supplies: the action is the name of the step in CamelCase,
// and the related object is the object of the pass, if the event regards another one. The event type is Normal or
// Warning, and the reason is in CamelCase. A note of more than 1024 bytes, the API's limit, is cut.
//
// Every event is a request. Emit events for changes, not for the current state. Without a manager or
// [Reconciler.WithRecorder], and outside of a pass, Eventf does nothing.
func Eventf(ctx context.Context, regarding client.Object, eventType, reason, note string, args ...any) {
	h := handleFrom(ctx)
	if h == nil {
		return
	}
	text := fmt.Sprintf(note, args...)
	h.use(func(p *pass) { p.emit(regarding, eventType, reason, text) })
}

// emit emits an event of the step that runs.
func (p *pass) emit(regarding client.Object, eventType, reason, note string) {
	if p.recorder == nil {
		return
	}
	var related client.Object
	if !p.owns(regarding) {
		related = p.before
	}
	p.recorder.Eventf(regarding, related, eventType, reason, eventnote.CamelCase(p.passSteps[p.running].name), "%s", eventnote.Cut(note))
}

// event emits an event of the pass itself. The action is made of the name of a step.
func (p *pass) event(eventType, reason, action, note string) {
	if p.recorder == nil {
		return
	}
	p.recorder.Eventf(p.before, nil, eventType, reason, eventnote.CamelCase(action), "%s", eventnote.Cut(note))
}

// report logs an outcome and emits its event. A failure is reported once: the conditions show that it goes on.
func (p *pass) report(ctx context.Context, o *outcome) {
	step := o.step.name
	switch o.state {
	case succeeded:
		p.memory.clearWarning(p.name, step)
	case waiting:
		log.FromContext(ctx).V(1).Info("Step waits", "step", step, "reason", o.reason, "message", o.message)
	case conflicted:
		log.FromContext(ctx).V(1).Info("Step lost a race and is tried again", "step", step, "reason", o.reason, "message", o.message)
	case failed, stalled:
		if p.memory.addWarning(p.name, step, o.message) {
			logFailure(log.FromContext(ctx).WithValues("step", step), o)
			p.event(corev1.EventTypeWarning, o.reason, step, o.message)
		}
	}
}

// logFailure logs a step that has failed or is stalled. An error is for whoever runs the operator: that the database is away
// or that a role lacks a verb. What its user has to correct in the object is information, which has no stack trace.
func logFailure(logger logr.Logger, o *outcome) {
	switch {
	case o.state == failed:
		logger.Error(o.err, "Step failed")
	case o.forbidden:
		logger.Error(o.err, "Step cannot succeed until something changes")
	default:
		logger.Info("Step cannot succeed until something changes", "reason", o.reason, "message", o.message)
	}
}

// reportEnd tells an exploration how the pass has ended. Without outcomes no step was due: the object is paused, filtered out or cleaned up.
// The value of a panic stays within the test: it may be secret.
func (p *pass) reportEnd(ctx context.Context, outcomes []outcome) {
	report := passcontext.PassEnds(ctx)
	if report == nil {
		return
	}
	end := passcontext.PassEnd{Kind: p.kind, UID: p.before.GetUID(), Cleanup: p.before.GetDeletionTimestamp() != nil}
	end.FilteredOut = len(outcomes) == 0 && p.filter != nil && !p.filter(p.before)
	for i := range outcomes {
		o := &outcomes[i]
		step := passcontext.StepEnd{Step: o.step.name, State: o.state.String(), Reason: o.reason, Message: o.message}
		if o.panicked != nil {
			step.Message = fmt.Sprintf("%s: %v", o.message, o.panicked)
		}
		end.Steps = append(end.Steps, step)
	}
	report(end)
}
