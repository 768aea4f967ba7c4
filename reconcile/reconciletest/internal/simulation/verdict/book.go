package verdict

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// These are the states of a part. They are the same as the states of steps in package reconcile.
const (
	Succeeded  = "succeeded"
	Skipped    = "skipped"
	Waiting    = "waiting"
	Conflicted = "conflicted"
	Failed     = "failed"
	Stalled    = "stalled"
)

// Object is an object that a controller reconciles.
type Object struct {
	Controller string
	ID         request.ObjectID
	UID        types.UID // empty: it is not known whether the object exists
	Name       string    // as messages name it
}

// End is how a step, or a whole pass, has ended.
type End struct {
	Step            string // empty: the whole pass
	State           string
	Reason, Message string
	Hint            string // what the reason of a failure may be; may be empty
	IsStatus        bool   // the end is about the conditions of the object: it leads to a line in the report, not to a finding
}

// Pass is how a pass has ended. If Ends is empty, nothing of the pass is judged.
type Pass struct {
	Object  Object
	Cleanup bool // the object was being deleted in the pass
	Ends    []End
}

// Book has the parts of all objects: their steps and passes, in the order in which they first ended.
type Book struct {
	parts []*part
	last  map[Object]Pass // the last pass over each object
}

// part is what is judged as one: a step of an object, the cleanup of a step, or all passes over an object if they have no steps.
type part struct {
	object  Object
	step    string
	cleanup bool

	rests     int    // how many times the operator was quiet after an action and the part was judged
	succeeded bool   // it had succeeded at one of these times
	now       End    // how it had ended when the operator was quiet the last time; without a state it is not judged
	since     string // the action after which it first ended in this way
	gone      bool   // the object does not exist any more

	counted          string // how many passes had failed when the operator was quiet the last time, such as "2 of 3 "; may be empty
	passes, failures int    // the numbers since the last action began
	failure          string // the message of the first of these failures
}

// BeginAction notes that the next action begins.
func (b *Book) BeginAction() {
	for _, p := range b.parts {
		p.passes, p.failures, p.failure = 0, 0, ""
	}
}

// Add notes how a pass has ended.
func (b *Book) Add(pass Pass) {
	if b.last == nil {
		b.last = map[Object]Pass{}
	}
	b.last[pass.Object] = pass
	for i := range pass.Ends {
		end := &pass.Ends[i]
		p := b.part(&pass, end.Step)
		p.passes++
		if end.State != Failed && end.State != Stalled {
			continue
		}
		if p.failures++; p.failures == 1 {
			p.failure = end.Message
		}
	}
}

// Replace corrects the end of the last pass over an object.
func (b *Book) Replace(pass Pass) {
	b.last[pass.Object] = pass
	for i := range pass.Ends {
		b.part(&pass, pass.Ends[i].Step)
	}
}

// part returns the part for a step of the pass's object. If there is none yet, it adds the part.
func (b *Book) part(of *Pass, step string) *part {
	i := slices.IndexFunc(b.parts, func(p *part) bool { return p.object == of.Object && p.step == step && p.cleanup == of.Cleanup })
	if i >= 0 {
		return b.parts[i]
	}
	p := &part{object: of.Object, step: step, cleanup: of.Cleanup}
	b.parts = append(b.parts, p)
	return p
}

// Rest is called when the operator is quiet after an action. It returns a line for each part that has failed since the action began and
// succeeds now.
func (b *Book) Rest(action string, exists func(types.UID) bool) (lines []string) {
	for _, p := range b.parts {
		if p.gone = p.gone || p.object.UID != "" && !exists(p.object.UID); p.gone {
			continue
		}
		last := b.last[p.object]
		if last.Cleanup && !p.cleanup {
			continue // the object is being deleted: the end before the deletion counts
		}
		p.rest(last.endOf(p), action)
		if p.now.State == Succeeded && p.failures > 0 {
			lines = append(lines, p.overcome(action))
		}
	}
	return lines
}

// endOf returns how the part has ended in the pass. If the pass did not run the part, endOf returns the zero value.
func (pass *Pass) endOf(p *part) End {
	i := slices.IndexFunc(pass.Ends, func(end End) bool { return end.Step == p.step })
	if i < 0 || pass.Cleanup != p.cleanup {
		return End{}
	}
	return pass.Ends[i]
}

// rest notes how the part has ended when the operator is quiet after the action.
func (p *part) rest(end End, action string) {
	if end.State != p.now.State || end.Reason != p.now.Reason {
		p.since = action
	}
	p.now, p.counted = end, ""
	if p.failures > 0 {
		p.counted = fmt.Sprintf("%d of %d ", p.failures, p.passes)
	}
	switch end.State {
	case Succeeded:
		p.succeeded = true
		p.rests++
	case Waiting, Failed, Stalled:
		p.rests++
	}
}
