package report

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/eventnote"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/writeloop"
)

// What was done to a child.
const (
	OutcomeCreated   owned.Outcome = "Created"
	OutcomeApplied   owned.Outcome = "Applied"
	OutcomeRecreated owned.Outcome = "Recreated"
	OutcomeDeleted   owned.Outcome = "Deleted"
	OutcomeRetained  owned.Outcome = "Retained" // the object stays although its owner is deleted
	OutcomeFailed    owned.Outcome = "Failed"   // counted only: package reconcile emits the events of errors
)

// Reporter tells what was done to children: by metrics, in the log, and by events on their owner.
type Reporter struct {
	Metrics  *Metrics
	Recorder events.EventRecorder // nil without a manager
}

// Report counts what was done to an object, logs it, and keeps it for EmitEvents. detail must not contain values of fields, which may be
// secret.
func (r *Reporter) Report(ctx context.Context, o *owned.Owner, k *owned.Kind, obj client.Object, done owned.Outcome, detail string) {
	r.Metrics.applies.WithLabelValues(k.GVK.Kind, strings.ToLower(string(done))).Inc()
	if done == OutcomeFailed {
		return
	}
	logger := log.FromContext(ctx).WithValues("step", o.Set, "kind", k.GVK.Kind, "child", client.ObjectKeyFromObject(obj))
	switch {
	case detail == "":
	case done == OutcomeApplied:
		logger = logger.WithValues("fields", detail)
	default:
		logger = logger.WithValues("why", detail)
	}
	logger.Info(string(done) + " a child")
	if r.Recorder == nil {
		return
	}
	text := k.Describe(obj)
	if detail != "" {
		text += " (" + detail + ")"
	}
	event, ok := o.Done[done]
	if !ok {
		event = &owned.DoneEvent{Related: &corev1.ObjectReference{
			APIVersion: k.GVK.GroupVersion().String(), Kind: k.GVK.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName(),
			UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
		}}
		if o.Done == nil {
			o.Done = map[owned.Outcome]*owned.DoneEvent{}
		}
		o.Done[done] = event
	}
	event.Texts = append(event.Texts, text)
}

// EmitEvents emits one event on the owner for each outcome of its children, since each event is a request. If an event has the same reason,
// action, owner and related object as another one within six minutes, client-go counts it as a repetition and drops its note. To avoid
// that, the action is the name of the step, and the related object is a child in the version after the write.
func (r *Reporter) EmitEvents(o *owned.Owner) {
	for _, done := range [...]owned.Outcome{OutcomeRecreated, OutcomeCreated, OutcomeApplied, OutcomeDeleted, OutcomeRetained} {
		if event, ok := o.Done[done]; ok {
			note := string(done) + " " + strings.Join(event.Texts, ", ")
			r.Recorder.Eventf(o.Object, event.Related, corev1.EventTypeNormal, string(done), o.Action(), "%s", eventnote.Cut(note))
		}
	}
	o.Done = nil
}

// Delayed returns the error for a write that has to wait because another writer undoes our writes. If it is delayed for the first time,
// Delayed also emits an event.
func (r *Reporter) Delayed(o *owned.Owner, live client.Object, message string, wait time.Duration, begins bool) error {
	if begins && r.Recorder != nil {
		r.Recorder.Eventf(o.Object, live, corev1.EventTypeWarning, ReasonWriteLoop, o.Action(), "%s", eventnote.Cut(message))
	}
	return owned.NewWaiting(ReasonWriteLoop, wait, message)
}

// Metrics are the metrics about writes of children. After they are registered, all sets of a process share them.
type Metrics struct {
	applies   *prometheus.CounterVec
	Rewritten *prometheus.GaugeVec
	Loops     *prometheus.GaugeVec
}

// NewMetrics returns metrics that are not registered yet.
func NewMetrics() *Metrics {
	return &Metrics{
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "opblocks_applies_total",
			Help: "Writes of owned objects, by kind and result: created, applied, recreated, deleted, retained, failed. An object that is already as desired is not counted.",
		}, []string{"kind", "result"}),
		Rewritten: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "opblocks_settled_differences",
			Help: "Owned objects of a kind in which an admission plug-in rewrites the field at this path. Such a difference is not applied again.",
		}, []string{"kind", "path"}),
		Loops: writeloop.NewMetric(),
	}
}

// Register registers the metrics. If another set has already registered its metrics, Register replaces ours by them. Call it before the
// metrics are used.
func (m *Metrics) Register(registry prometheus.Registerer) error {
	return errors.Join(registerOrShare(registry, &m.applies), registerOrShare(registry, &m.Rewritten), registerOrShare(registry, &m.Loops))
}

func registerOrShare[C prometheus.Collector](registry prometheus.Registerer, c *C) error {
	err := registry.Register(*c)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		*c = known.ExistingCollector.(C)
		return nil
	}
	return err
}

// ReasonWriteLoop is the reason while a write is delayed, because another writer undoes it.
const ReasonWriteLoop = writeloop.Reason
