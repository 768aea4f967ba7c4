package trace

import (
	"fmt"
	"strings"
	"time"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
)

// Moment is one thing that happened in a run, for the page that shows the run.
type Moment struct {
	At      time.Duration // virtual time since the beginning
	Phase   int           // the number of the user's action; 0: before the first action
	Pass    int           // 0: outside of passes
	Process int           // the number of the process that sent the request; 0: not a request
	What    MomentKind
	Text    string // what happened
	Answer  string // the answer to a request, or why a pass began
	Fault   string // the fault that happened here; "": none
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

// Timeline returns what happened, in order.
func (t *Trace) Timeline() []Moment {
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

func (r *Row) moment() Moment {
	m := Moment{At: r.at, Pass: r.Pass, Text: strings.TrimSpace(r.What), Answer: r.Answer}
	fault := r.Fault
	switch {
	case r.Call != nil:
		fault = kinds.Fault(r.Call.Fault)
		m.Process, m.Text, m.Answer, m.Failed, m.Body = r.Call.Process, r.Call.String(), r.Call.Answer(), r.Call.Err != nil, r.Call.IndentedBody()
		if r.Call.DryRun {
			m.Text += " (dry run)"
		}
		switch {
		case r.Call.Cached:
			m.What = MomentCached
		case r.Call.IsWrite():
			m.What = MomentWrite
		default:
			m.What = MomentRead
		}
	case r.Change != "":
		m.What, m.Text = MomentChange, r.Change
	case strings.HasPrefix(r.What, UserPrefix):
		m.What, m.Text = MomentAction, strings.TrimPrefix(r.What, UserPrefix)
	case strings.HasPrefix(r.What, PassPrefix):
		m.What, m.Text = MomentPass, strings.TrimPrefix(r.What, PassPrefix)
	case r.Pass > 0:
		m.What, m.Failed = MomentMessage, strings.HasPrefix(r.Answer, "error: ")
	default:
		m.What = MomentOther
	}
	if fault != "" {
		m.Fault = fmt.Sprintf("%s: %s", fault, kinds.RuleOf(fault).Words)
	}
	return m
}
