package operator

import (
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
)

// eventRecorder records events in the trace. They do not count as requests, since the operator does not wait for an answer.
type eventRecorder struct{ process *Process }

func (e *eventRecorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, note string, args ...any) {
	e.process.operator.world.Rights.AddEvent("events.k8s.io", regarding)
	e.report(regarding, eventType, reason, note, args...)
}

func (e *eventRecorder) report(regarding runtime.Object, eventType, reason, note string, args ...any) {
	e.process.operator.report(e.process, "event: "+eventType+" "+reason+text.ObjectOf(regarding), fmt.Sprintf(note, args...))
}

func (e *eventRecorder) AnnotatedEventf(regarding, related runtime.Object, _ map[string]string, eventType, reason, action, note string, args ...any) {
	e.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// legacyRecorder records events of the legacy events API, like eventRecorder.
type legacyRecorder struct{ to *eventRecorder }

func (l legacyRecorder) Event(object runtime.Object, eventType, reason, message string) {
	l.Eventf(object, eventType, reason, "%s", message)
}

func (l legacyRecorder) Eventf(object runtime.Object, eventType, reason, format string, args ...any) {
	l.to.process.operator.world.Rights.AddEvent("", object)
	l.to.report(object, eventType, reason, format, args...)
}

func (l legacyRecorder) AnnotatedEventf(object runtime.Object, _ map[string]string, eventType, reason, format string, args ...any) {
	l.Eventf(object, eventType, reason, format, args...)
}

// report records an event or a log line of the operator in the trace. If the text contains the value of a Secret, the run fails.
func (o *Operator) report(p *Process, what, text string) {
	o.world.Mu.Lock()
	defer o.world.Mu.Unlock()
	if p.Dead {
		return
	}
	number := 0
	if p.Pass != nil {
		number = p.Pass.number
	}
	o.world.Trace.Add(trace.Row{Pass: number, What: "  " + what, Answer: text})
	if err := o.world.History.FindLeakInText(what, text); err != nil {
		o.world.Failures.AddLocked(err)
	}
}

// newLogger returns a logger that records errors in the trace. It searches errors and messages of level 0 for values of Secrets.
// Messages of other levels are dropped.
func newLogger(p *Process) logr.Logger { return logr.New(logSink{process: p}) }

type logSink struct {
	process *Process
}

func (logSink) Init(logr.RuntimeInfo)  {}
func (logSink) Enabled(level int) bool { return level == 0 }

// Info searches the message for values of Secrets. It records nothing.
func (l logSink) Info(_ int, message string, values ...any) {
	run := l.process.operator
	run.world.Mu.Lock()
	defer run.world.Mu.Unlock()
	if l.process.Dead || len(run.world.History.Secrets) == 0 {
		return
	}
	if err := run.world.History.FindLeakInText("the log", message+format(values)); err != nil {
		run.world.Failures.AddLocked(err)
	}
}

func (l logSink) Error(err error, message string, values ...any) {
	text := message
	if err != nil {
		text += ": " + err.Error()
	}
	l.process.operator.report(l.process, "log", text+format(values))
}

func (l logSink) WithValues(...any) logr.LogSink { return l }
func (l logSink) WithName(string) logr.LogSink   { return l }

// format returns keys and values as text. It leaves out the keys that controller-runtime adds to every line.
func format(values []any) string {
	var text strings.Builder
	for i := 0; i+1 < len(values); i += 2 {
		switch values[i] {
		case "controller", "controllerGroup", "controllerKind", "object", "namespace", "name", "reconcileID", "source":
			continue
		}
		fmt.Fprintf(&text, " %v=%v", values[i], values[i+1])
	}
	return text.String()
}
