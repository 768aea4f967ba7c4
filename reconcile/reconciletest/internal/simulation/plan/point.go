package plan

import (
	"slices"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// Point is where a fault can be injected: at a request, at the change of an object, or at a deletion or a write by the user.
type Point struct {
	Call      *request.Call // the request; nil for a change and for an action of the user
	Deletion  bool          // the user deletes the object
	UserWrite bool          // the user writes the object, and a webhook may be skipped
	Batch     bool          // the operator sends several requests at once
	Object    request.ObjectID
	Name      string
	Nth       int  // its number among the points of the same name
	HasNext   bool // the user has an action left that is not a Wait
	Watched   bool // the process watches the kind
	Twice     bool // the process watches the kind as whole objects and as metadata
	Spared    bool // an action of the scenario asks that no fault is tried here, except faults that belong to the next action

	Gone      bool // the point is the deletion of an object
	Added     bool // the point is the creation of an object
	Action    int  // how many actions of the user have begun before the change
	Recreated bool // the next action creates the object again; set by MarkRecreations

	repeated []kinds.Fault // crashes that leave the same as an earlier crash; set by MarkRepeatedCrashes
}

// Faults returns the kinds of faults that can be injected at the point.
func (p *Point) Faults() []kinds.Fault {
	var all []kinds.Fault
	for i := range kinds.Rules {
		if rule := &kinds.Rules[i]; p.Applies(rule) {
			all = append(all, rule.Kind)
		}
	}
	return all
}

// MarkRecreations notes for each deletion whether the next action creates an object of the same name, and nothing does so before.
func MarkRecreations(points []Point) {
	for i := range points {
		p := &points[i]
		if !p.Gone {
			continue
		}
		next := slices.IndexFunc(points[i:], func(later Point) bool { return later.Added && later.Object == p.Object })
		p.Recreated = next > 0 && points[i+next].Action == p.Action+1
	}
}

// MarkRepeatedCrashes notes crashes that need not be tried, since an earlier crash leaves the same for the next process. If only reads
// happen between two writes, the crash after the first write and the crash before the second one leave the same. If a write changes
// nothing, the crashes before it and after it leave the same. tried reports whether a kind of fault is tried at all.
func MarkRepeatedCrashes(points []Point, tried func(kinds.Fault) bool) {
	type crash struct {
		moment   request.Moment
		downtime bool
	}
	known := map[crash]bool{}
	for i := range points {
		p := &points[i]
		if p.Call == nil || p.Call.After.Time.IsZero() || !p.Call.IsWrite() || p.Call.DryRun {
			continue
		}
		for _, c := range []struct {
			kind   kinds.Fault
			leaves crash
		}{
			{kinds.CrashBefore, crash{p.Call.Before, false}},
			{kinds.CrashAfter, crash{p.Call.After, false}},
			{kinds.CrashDowntime, crash{p.Call.After, true}},
		} {
			switch {
			case !tried(c.kind) || p.spares(kinds.RuleOf(c.kind)):
			case known[c.leaves]:
				p.repeated = append(p.repeated, c.kind)
			default:
				known[c.leaves] = true
			}
		}
	}
}

// Repeated returns the kinds of crashes that need not be tried at the point, since a crash at an earlier point leaves the same for the next
// process.
func (p *Point) Repeated() []kinds.Fault { return p.repeated }

// spares reports whether faults of a rule are left out because the last action asks for that. A fault that needs the next action belongs to
// the next action, so it is not left out.
func (p *Point) spares(rule *kinds.Rule) bool {
	return p.Spared && !rule.NeedsNextAction && !rule.NeedsRecreation
}

// SparedFaults returns the kinds of faults that are left out at the point only because the last action asks for that.
func (p *Point) SparedFaults() (spared []kinds.Fault) {
	unspared := *p
	unspared.Spared = false
	return slices.DeleteFunc(unspared.Faults(), func(kind kinds.Fault) bool { return !p.spares(kinds.RuleOf(kind)) })
}

// Plan holds the faults to inject in a run, and the points that the run has reached. The run's lock guards it.
type Plan struct {
	faults   []Fault
	Count    map[string]int // the number of requests and changes by name
	Points   []Point
	Injected []Fault
	Spares   bool // the last action asks that no fault is tried; see Point
}

// New returns a plan with the faults.
func New(faults []Fault) Plan { return Plan{faults: faults, Count: map[string]int{}} }

// Reach notes that the run has reached a point. It returns the kind of the fault that is planned there, "" for none, and the point with its
// number.
func (p *Plan) Reach(at Point) (kinds.Fault, Point) {
	p.Count[at.Name]++
	at.Nth, at.Spared = p.Count[at.Name], p.Spares
	p.Points = append(p.Points, at)
	for _, f := range p.faults {
		if f.At == at.Name && f.Nth == at.Nth {
			return f.Kind, at
		}
	}
	return "", at
}

// NoteInjected notes that a planned fault is injected.
func (p *Plan) NoteInjected(kind kinds.Fault, at Point) {
	p.Injected = append(p.Injected, Fault{kind, at.Name, at.Nth})
}
