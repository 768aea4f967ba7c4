package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type object = map[string]any

func TestJudge(t *testing.T) {
	shop := func(colour string) object { return object{"status": object{"colour": colour}} }
	history := func(entries ...any) object { return object{"status": object{"history": entries}} }
	conditions := func(types ...string) object {
		list := []any{}
		for _, of := range types {
			list = append(list, object{"type": of, "status": "True"})
		}
		return object{"status": object{"conditions": list}}
	}
	finished := object{"status": object{"conditions": []any{object{"type": "Complete", "status": "True"}}}}
	ownedByJob := object{"metadata": object{"namespace": "default", "ownerReferences": []any{object{"kind": "Job", "name": "a", "controller": true}}}}
	running := object{"status": object{}}
	tests := map[string]struct {
		reason     string
		references References
		got        State
		wrong      []string
		timing     []string
		notes      []string
	}{
		"AsWithoutFaults": {
			reason:     "a state that equals the baseline is right",
			references: References{Baseline: State{"Shop a": shop("red")}, Late: State{"Shop a": shop("blue")}},
			got:        State{"Shop a": shop("red")},
		},
		"AsWithALateStart": {
			reason:     "a state that equals the late start is right too, though the baseline differs",
			references: References{Baseline: State{"Shop a": shop("red")}, Late: State{"Shop a": shop("blue")}},
			got:        State{"Shop a": shop("blue")},
		},
		"Exchanged": {
			reason:     "ports that are given first come, first served, go to other objects if these come in another order",
			references: References{Baseline: State{"Shop a": shop("1"), "Shop b": shop("2"), "Shop c": shop("3")}},
			got:        State{"Shop a": shop("2"), "Shop b": shop("1"), "Shop c": shop("3")},
			timing: []string{`status.colour of each Shop: first come, first served, and they came in another order: ` +
				`Shop a has "1" without faults and "2" here, Shop b has "2" without faults and "1" here`},
		},
		"NotExchanged": {
			reason:     "a value that no object should have is wrong",
			references: References{Baseline: State{"Shop a": shop("1"), "Shop b": shop("2")}},
			got:        State{"Shop a": shop("2"), "Shop b": shop("2")},
			wrong:      []string{`Shop a: status.colour: "1" without faults, "2" here`},
		},
		"RemovedJob": {
			reason:     "a finished Job that another writer has deleted need not run again, and its pods go with it",
			references: References{Baseline: State{"Job default/a": finished, "Pod default/a-1": ownedByJob, "Job default/b": finished}, Removed: []string{"Job default/a"}},
			got:        State{},
			wrong:      []string{"Job default/b: present without faults, absent here"},
		},
		"NoLateStart": {
			reason:     "without a late start the baseline alone counts",
			references: References{Baseline: State{"Shop a": shop("red")}},
			got:        State{"Shop a": shop("blue")},
			wrong:      []string{`Shop a: status.colour: "red" without faults, "blue" here`},
		},
		"AgainstTheNearer": {
			reason: "it is judged against the reference with fewer differences, which is the late start",
			references: References{
				Baseline: State{"Shop a": shop("red"), "Shop b": shop("red"), "Shop c": shop("red")},
				Late:     State{"Shop a": shop("blue"), "Shop b": shop("blue"), "Shop c": shop("red")},
			},
			got:   State{"Shop a": shop("blue"), "Shop b": shop("blue"), "Shop c": shop("green")},
			wrong: []string{`Shop c: status.colour: "red" without faults, "green" here`},
		},
		"WhereTheReferencesDiffer": {
			reason: "nobody is blamed, and all three values are shown",
			references: References{
				Baseline: State{"Shop a": shop("red"), "Shop b": shop("red")},
				Late:     State{"Shop a": shop("blue"), "Shop b": shop("blue")},
			},
			got:    State{"Shop a": shop("red"), "Shop b": shop("blue")},
			timing: []string{`Shop b: status.colour: "red" without faults, "blue" if the operator starts late, "blue" here`},
		},
		"ObjectOfOneReference": {
			reason: "an object that only one reference has is described as present or absent",
			references: References{
				Baseline: State{"Shop a": shop("red"), "Shop b": shop("red")},
				Late:     State{"Shop a": shop("blue")},
			},
			got:    State{"Shop a": shop("red")},
			timing: []string{"Shop b: present without faults, absent if the operator starts late, absent here"},
		},
		"ObjectOfBothReferences": {
			reason: "an object that both references have is missed, though they differ in it",
			references: References{
				Baseline: State{"Shop a": shop("red"), "Shop b": shop("red")},
				Late:     State{"Shop a": shop("red"), "Shop b": shop("blue")},
			},
			got:   State{"Shop a": shop("red")},
			wrong: []string{"Shop b: present without faults, absent here"},
		},
		"BlameBesideTiming": {
			reason: "what both references agree on is blamed, whatever else depends on timing",
			references: References{
				Baseline: State{"Shop a": shop("red"), "Shop b": shop("red")},
				Late:     State{"Shop a": shop("blue"), "Shop b": shop("red")},
			},
			got:    State{"Shop a": shop("green")},
			wrong:  []string{"Shop b: present without faults, absent here"},
			timing: []string{`Shop a: status.colour: "red" without faults, "blue" if the operator starts late, "green" here`},
		},
		"Random": {
			reason: "a place at which two runs without faults differ is not compared, and neither is what is below it",
			references: References{
				Baseline: State{"Shop a": shop("red"), "Shop b": shop("red")},
				Random:   Places{"Shop a": {"status.colour"}, "Shop b": {"status"}},
			},
			got: State{"Shop a": shop("green"), "Shop b": shop("green")},
		},
		"NearInTime": {
			reason: "a place may have its value of another moment between which the user does nothing",
			references: References{
				Baseline: State{"Shop a": shop("red"), "Shop b": shop("red")},
				Near:     []State{{"Shop a": shop("blue"), "Shop b": shop("red")}},
			},
			got:   State{"Shop a": shop("blue"), "Shop b": shop("blue")},
			wrong: []string{`Shop b: status.colour: "red" without faults, "blue" here`},
		},
		"History": {
			reason: "a list whose entries all appear in one of the references is a history",
			references: References{
				Baseline: State{"Shop a": history("one", "two"), "Shop b": shop("red")},
				Late:     State{"Shop a": history("two"), "Shop b": shop("red")},
			},
			got:   State{"Shop a": history("one"), "Shop b": shop("blue")},
			wrong: []string{`Shop b: status.colour: "red" without faults, "blue" here`},
		},
		"HistoryWithAnUnknownEntry": {
			reason: "an entry that no reference has is no history of either",
			references: References{
				Baseline: State{"Shop a": history("one", "two")},
				Late:     State{"Shop a": history("two")},
			},
			got:    State{"Shop a": history("three", "two", "one")},
			timing: []string{`Shop a: status.history: ["one","two"] without faults, ["two"] if the operator starts late, ["three","two","one"] here`},
		},
		"EntryWithAName": {
			reason: "an entry that one of the references has not may be there or not",
			references: References{
				Baseline: State{"Shop a": conditions("Degraded", "Ready"), "Shop b": shop("red"), "Shop c": shop("red")},
				Late:     State{"Shop a": conditions("Ready"), "Shop b": shop("red"), "Shop c": shop("blue")},
			},
			got:   State{"Shop a": conditions("Ready"), "Shop b": shop("blue"), "Shop c": shop("red")},
			wrong: []string{`Shop b: status.colour: "red" without faults, "blue" here`},
		},
		"EntryTooMany": {
			reason:     "an entry that no reference has is blamed by its name, and not by two lists",
			references: References{Baseline: State{"Shop a": conditions("Ready")}, Late: State{"Shop a": conditions("Ready")}},
			got:        State{"Shop a": conditions("Degraded", "Ready")},
			wrong:      []string{"Shop a: status.conditions[Degraded]: absent without faults, present here"},
		},
		"EntryMissing": {
			reason:     "an entry that both references have is missed by its name",
			references: References{Baseline: State{"Shop a": conditions("Degraded", "Ready")}, Late: State{"Shop a": conditions("Degraded", "Ready")}},
			got:        State{"Shop a": conditions("Ready")},
			wrong:      []string{"Shop a: status.conditions[Degraded]: present without faults, absent here"},
		},
		"EntryThatALateStartLacks": {
			reason: "the values of an entry are named if a late start alone has none, and what they share is left out",
			references: References{
				Baseline: State{"Shop a": object{"status": object{"conditions": []any{object{"type": "Suspended", "status": "False", "reason": "Resumed"}}}}},
				Late:     State{"Shop a": object{"status": object{}}},
			},
			got:    State{"Shop a": object{"status": object{"conditions": []any{object{"type": "Suspended", "status": "True", "reason": "Resumed"}}}}},
			timing: []string{`Shop a: status.conditions[Suspended].status: "False" without faults, nothing if the operator starts late, "True" here`},
		},
		"ObjectThatALateStartLacks": {
			reason: "the same of a whole object, without what is so at another moment of a wait",
			references: References{
				Baseline: State{"Shop a": object{"status": object{"colour": "red", "size": "1"}}},
				Late:     State{},
				Near:     []State{{"Shop a": object{"status": object{"size": "2"}}}},
			},
			got:    State{"Shop a": object{"status": object{"colour": "blue", "size": "2"}}},
			timing: []string{`Shop a: status.colour: "red" without faults, nothing if the operator starts late, "blue" here`},
		},
		"ObjectOfALateStart": {
			reason: "and if only the late start has one",
			references: References{
				Baseline: State{},
				Late:     State{"Shop a": object{"status": object{"colour": "red", "size": "1"}}},
			},
			got:    State{"Shop a": object{"status": object{"colour": "blue", "size": "1"}}},
			timing: []string{`Shop a: status.colour: nothing without faults, "red" if the operator starts late, "blue" here`},
		},
		"FinishedJob": {
			reason: "a Job that has finished may be kept or not",
			references: References{
				Baseline: State{"Job a": finished, "Shop b": shop("red"), "Shop c": shop("red")},
				Late:     State{"Shop b": shop("red"), "Shop c": shop("blue")},
			},
			got:   State{"Shop b": shop("blue"), "Shop c": shop("red")},
			wrong: []string{`Shop b: status.colour: "red" without faults, "blue" here`},
		},
		"RunningJob": {
			reason: "a Job that runs is work that is done or not",
			references: References{
				Baseline: State{"Job a": running, "Shop b": shop("red")},
				Late:     State{"Shop b": shop("blue")},
			},
			got:    State{"Shop b": shop("red")},
			timing: []string{"Job a: present without faults, absent if the operator starts late, absent here"},
		},
		"External": {
			reason:     "what is outside of the cluster is judged as well",
			references: References{Baseline: State{External: []any{"ann"}}, Late: State{External: []any{"ann"}}},
			got:        State{External: nil},
			wrong:      []string{`external: ["ann"] without faults, null here`},
		},
		"AnotherOrder": {
			reason:     "a list in another order is named as such",
			references: References{Baseline: State{"Shop a": history("one", "two")}},
			got:        State{"Shop a": history("two", "one")},
			wrong:      []string{`Shop a: status.history[0]: "one" without faults, "two" here`, `Shop a: status.history[1]: "two" without faults, "one" here`},
			notes:      []string{"Shop a: status.history has the same items in another order: if they come from a Go map, whose order is random, sort them"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			verdict := tc.references.Judge(tc.got)
			var wrong []string
			for i := range verdict.Wrong {
				wrong = append(wrong, verdict.Wrong[i].String())
			}
			var timing []string
			for _, t := range verdict.Timing {
				timing = append(timing, t.Line)
			}
			if diff := cmp.Diff([][]string{tc.wrong, tc.timing, tc.notes}, [][]string{wrong, timing, verdict.Notes}); diff != "" {
				t.Errorf("%s: wrong, timing and notes, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlacesOverlap(t *testing.T) {
	tests := map[string]struct {
		reason     string
		place, at  string
		overlapped bool
	}{
		"Same":         {"the place itself", "status.a", "status.a", true},
		"Below":        {"a field within the place", "status.a", "status.a.b", true},
		"Item":         {"an item of a list at the place", "status.a", "status.a[0]", true},
		"Around":       {"a value that contains the place", "status.a.b", "status.a", true},
		"WholeObject":  {"the object has every path", "", "status.a", true},
		"OtherField":   {"a field beside it", "status.a", "status.b", false},
		"LongerName":   {"a field whose name begins alike", "status.a", "status.ab", false},
		"OtherSibling": {"an item beside it", "status.a[0]", "status.a[1]", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			places := Places{"Shop a": {tc.place}}
			if got := places.overlap(&Change{Object: "Shop a", Path: tc.at}); got != tc.overlapped {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.overlapped)
			}
			if places.overlap(&Change{Object: "Shop b", Path: tc.at}) {
				t.Error("another object has no such place")
			}
		})
	}
}

func TestPlacesDescribe(t *testing.T) {
	places := PlacesOf(
		State{"Secret b": object{"data": object{"key": "x"}}, "Secret a": object{}},
		State{"Secret b": object{"data": object{"key": "y"}}})
	places["Secret b"] = append(places["Secret b"], "data.key") // as found after another action
	if diff := cmp.Diff([]string{"Secret a", "Secret b: data.key"}, places.Describe()); diff != "" {
		t.Error(diff)
	}
}
