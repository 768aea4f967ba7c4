package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// TestMarkRepeatedCrashes has two requests. The cases differ in what happens between them.
func TestMarkRepeatedCrashes(t *testing.T) {
	begin := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(revision int64, edit func(*request.Moment)) request.Moment {
		m := request.Moment{Revision: revision, Time: begin}
		if edit != nil {
			edit(&m)
		}
		return m
	}
	write := func(verb string, before, after request.Moment) Point {
		return Point{Call: &request.Call{Request: request.Request{Verb: verb}, Before: before, After: after}}
	}
	first := func() Point { return write("create", at(1, nil), at(2, nil)) }
	tests := map[string]struct {
		reason  string
		points  []Point
		skipped []kinds.Fault
		want    [][]kinds.Fault
	}{
		"NextWrite": {
			reason: "nothing happens between two writes", points: []Point{first(), write("patch", at(2, nil), at(3, nil))},
			want: [][]kinds.Fault{nil, {kinds.CrashBefore}},
		},
		"NoChange": {
			reason: "a write that changes nothing leaves what was there", points: []Point{first(), write("patch", at(2, nil), at(2, nil))},
			want: [][]kinds.Fault{nil, {kinds.CrashBefore, kinds.CrashAfter, kinds.CrashDowntime}},
		},
		"FirstChangesNothing": {
			reason: "the operator may be down after it", points: []Point{write("patch", at(2, nil), at(2, nil))},
			want: [][]kinds.Fault{{kinds.CrashAfter}},
		},
		"AnotherWriter": {
			reason: "somebody has written between", points: []Point{first(), write("patch", at(3, nil), at(4, nil))}, want: [][]kinds.Fault{nil, nil},
		},
		"Later": {
			reason: "time has passed between", want: [][]kinds.Fault{nil, nil},
			points: []Point{first(), write("patch", at(2, func(m *request.Moment) { m.Time = begin.Add(1) }), at(3, func(m *request.Moment) { m.Time = begin.Add(1) }))},
		},
		"CallOutside": {
			reason: "an API outside may have changed something that nobody sees", want: [][]kinds.Fault{nil, nil},
			points: []Point{first(), write("patch", at(2, func(m *request.Moment) { m.Calls = 1 }), at(3, func(m *request.Moment) { m.Calls = 1 }))},
		},
		"Action": {
			reason: "the user has begun something", want: [][]kinds.Fault{nil, nil},
			points: []Point{first(), write("patch", at(2, func(m *request.Moment) { m.Actions = 1 }), at(3, func(m *request.Moment) { m.Actions = 1 }))},
		},
		"Read": {
			reason: "no crash is tried at a read", points: []Point{first(), write("get", at(2, nil), at(2, nil)), write("patch", at(2, nil), at(3, nil))},
			want: [][]kinds.Fault{nil, nil, {kinds.CrashBefore}},
		},
		"Skipped": {
			reason: "the other crash is not tried", points: []Point{first(), write("patch", at(2, nil), at(3, nil))}, skipped: []kinds.Fault{kinds.CrashAfter},
			want: [][]kinds.Fault{nil, nil},
		},
		"NotSent": {
			reason: "a fault kept it from being carried out", points: []Point{first(), write("patch", at(2, nil), request.Moment{})}, want: [][]kinds.Fault{nil, nil},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			MarkRepeatedCrashes(tc.points, func(kind kinds.Fault) bool { return !slices.Contains(tc.skipped, kind) })
			var got [][]kinds.Fault
			for i := range tc.points {
				got = append(got, tc.points[i].Repeated())
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s: %s", tc.reason, d)
			}
		})
	}
}
