package simulation

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// Moment is one thing that happened in a run, in a form that can be drawn.
type Moment struct {
	At      time.Duration // virtual time since the beginning
	Phase   int           // 0 until the user's first action, then the number of the action
	Pass    int           // 0: outside of passes
	Process int           // the number of the process that sent the request; 0: not a request
	What    MomentKind
	Text    string // what happened
	Answer  string // the answer to a request, or why a pass began
	Fault   string // what went wrong here, "" if nothing
	Body    string // what a write sent, as indented JSON; "" for a Secret
	Failed  bool   // the answer is an error
}

// MomentKind is what happened.
type MomentKind string

// The kinds of moments.
const (
	MomentAction  MomentKind = "action"  // the user acts
	MomentPass    MomentKind = "pass"    // a pass begins
	MomentWrite   MomentKind = "write"   // the operator sends a write, or has an effect
	MomentRead    MomentKind = "read"    // the operator reads from the API server, or queries something outside
	MomentCached  MomentKind = "cached"  // the operator reads from the cache
	MomentChange  MomentKind = "change"  // an object changed on the API server
	MomentMessage MomentKind = "message" // an event, a log line, the end of a pass
	MomentOther   MomentKind = "other"   // processes and other writers
)

// Timelines returns what happened in the run of the first failure, and in the run without faults. Both are empty if no
// run failed.
func (x *Exploration) Timelines() (failed, without []Moment) {
	if len(x.Failures) == 0 || x.Failures[0].trace == nil {
		return nil, nil
	}
	failed = x.Failures[0].trace.timeline()
	if x.baseline != nil && x.baseline != x.Failures[0].trace {
		without = x.baseline.timeline()
	}
	return failed, without
}

func (t *trace) timeline() []Moment {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []Moment
	phase := 0
	for i := range t.rows {
		m := t.rows[i].moment()
		if m.What == MomentAction {
			phase++
		}
		m.Phase = phase
		all = append(all, m)
	}
	return all
}

func (r *row) moment() Moment {
	m := Moment{At: r.at, Pass: r.pass, Text: strings.TrimSpace(r.what), Answer: r.answer}
	fault := r.fault
	switch {
	case r.call != nil:
		fault = kinds.Fault(r.call.Fault)
		m.Process, m.Text, m.Answer, m.Failed, m.Body = r.call.Process, r.call.String(), r.call.answer(), r.call.Err != nil, r.call.indentedBody()
		switch {
		case r.call.Cached:
			m.What = MomentCached
		case r.call.IsWrite():
			m.What = MomentWrite
		default:
			m.What = MomentRead
		}
	case r.change != "":
		m.What, m.Text = MomentChange, r.change
	case strings.HasPrefix(r.what, userPrefix):
		m.What, m.Text = MomentAction, strings.TrimPrefix(r.what, userPrefix)
	case strings.HasPrefix(r.what, passPrefix):
		m.What, m.Text = MomentPass, strings.TrimPrefix(r.what, passPrefix)
	case r.pass > 0:
		m.What, m.Failed = MomentMessage, strings.HasPrefix(r.answer, "error: ")
	default:
		m.What = MomentOther
	}
	if fault != "" {
		m.Fault = fmt.Sprintf("%s: %s", fault, ruleOf(fault).words)
	}
	return m
}

// indentedBody returns the body of a write, for a reader. It returns "" for a Secret.
func (r *Request) indentedBody() string {
	var b bytes.Buffer
	if !r.IsWrite() || len(r.Body) == 0 || r.Kind.Kind == "Secret" || json.Indent(&b, r.Body, "", "  ") != nil {
		return ""
	}
	return b.String()
}
