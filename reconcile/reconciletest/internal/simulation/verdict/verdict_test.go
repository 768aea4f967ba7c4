package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

var shop = Object{
	Controller: "shop", UID: "1", Name: "Shop default/web",
	ID: request.ObjectID{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}, Name: types.NamespacedName{Namespace: "default", Name: "web"}},
}

// passOf returns a pass in which step "greet" ends in a state.
func passOf(state string) Pass {
	return Pass{Object: shop, Ends: []End{{Step: "greet", State: state, Reason: "Why", Message: "because"}}}
}

// TestJudge follows one step. After each pass the operator is quiet, and the step is judged. Actions are named by the numbers of the
// passes.
func TestJudge(t *testing.T) {
	paused := Pass{Object: shop}
	cleanup := Pass{Object: shop, Cleanup: true, Ends: []End{{Step: "greet", State: Waiting, Reason: "Why", Message: "because"}}}
	cleanedUp := Pass{Object: shop, Cleanup: true}
	wholePass := Pass{Object: shop, Ends: []End{{State: Failed, Message: "in an error: no motto", Hint: "a hint"}}}
	conditions := Pass{Object: shop, Ends: []End{{State: Succeeded}, {Step: "status", IsStatus: true, State: Waiting, Reason: "Why", Message: "because"}}}
	tests := map[string]struct {
		reason  string
		passes  []Pass
		deleted bool   // the object is gone at the end
		problem string // the beginning of the only problem; "": there is none
		line    string // the only line; "": there is none
	}{
		"Succeeds":          {reason: "all is well", passes: []Pass{passOf(Succeeded)}},
		"Fails":             {reason: "it fails in each pass", passes: []Pass{passOf(Failed)}, problem: `Without any fault, step "greet" of Shop default/web has never succeeded, and fails since "1": Why: because`},
		"Waits":             {reason: "nothing ever comes", passes: []Pass{passOf(Waiting)}, problem: `Without any fault, step "greet" of Shop default/web has never succeeded, and waits since "1": Why: because`},
		"WaitsThenSucceeds": {reason: "it waited for something that came", passes: []Pass{passOf(Waiting), passOf(Succeeded)}},
		"StalledInTheEnd":   {reason: "it has failed since the second action", passes: []Pass{passOf(Succeeded), passOf(Stalled), passOf(Stalled)}, problem: `Without any fault, step "greet" of Shop default/web is stalled since "2": Why: because`},
		"WaitsInTheEnd":     {reason: "it may wait for what the scenario does not do", passes: []Pass{passOf(Succeeded), passOf(Waiting)}, line: `Without any fault, step "greet" of Shop default/web waits, though it had succeeded before, since "2": Why: because`},
		"FailsUntilDeleted": {reason: "the deletion repairs nothing", passes: []Pass{passOf(Failed)}, deleted: true, problem: `Without any fault, step "greet" of Shop default/web has never succeeded, and fails since "1": Why: because`},
		"Skipped":           {reason: "another step is judged", passes: []Pass{passOf(Skipped)}},
		"Race":              {reason: "somebody else was faster", passes: []Pass{passOf(Conflicted)}},
		"Paused":            {reason: "a person has paused it, so nothing is due", passes: []Pass{passOf(Failed), paused}},
		"CleanupWaits":      {reason: "the object is never gone", passes: []Pass{passOf(Succeeded), cleanup}, problem: `Without any fault, the cleanup of step "greet" of Shop default/web waits since "2": Why: because`},
		"CleanupEnds":       {reason: "what it has waited for came, and the object is gone", passes: []Pass{passOf(Succeeded), cleanup}, deleted: true},
		"CleanedUp":         {reason: "only the finalizer of somebody else is left", passes: []Pass{passOf(Succeeded), cleanup, cleanedUp}},
		"FailsBeforeDelete": {reason: "how the step stood before the deletion counts", passes: []Pass{passOf(Failed), cleanup}, deleted: true, problem: `Without any fault, step "greet" of Shop default/web has never succeeded, and fails since "1": Why: because`},
		"WholePass":         {reason: "other reconcilers have no steps", passes: []Pass{wholePass}, problem: `Without any fault, 1 of 1 passes over Shop default/web after "1" end in an error: no motto` + "\na hint"},
		"Conditions":        {reason: "conditions are worth a line and no more", passes: []Pass{conditions}, line: `Without any fault, the conditions of Shop default/web say in the end that it is not ready, since "1": Why: because`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &Book{}
			for i, pass := range tc.passes {
				b.BeginAction()
				b.Add(pass)
				b.Rest(string(rune('1'+i)), func(types.UID) bool { return true })
			}
			if tc.deleted {
				b.BeginAction()
				b.Rest("deletion", func(types.UID) bool { return false })
			}
			j := b.Judge(nil)
			var problem, line string
			if len(j.Problems) > 0 {
				problem = j.Problems[0].Text
			}
			if len(j.Lines) > 0 {
				line = j.Lines[0]
			}
			if !strings.HasPrefix(problem, tc.problem) || (problem == "") != (tc.problem == "") || len(j.Problems) > 1 {
				t.Errorf("%s: got problem %q, want %q", tc.reason, problem, tc.problem)
			}
			if diff := cmp.Diff(tc.line, line); diff != "" {
				t.Errorf("%s: line (-want +got):\n%s", tc.reason, diff)
			}
			if got, want := strings.Contains(problem, "Only the deletion of the object has ended that"), tc.deleted && tc.problem != ""; got != want {
				t.Errorf("%s: the deletion is named: %v, want %v", tc.reason, got, want)
			}
		})
	}
}

// TestUnready shows which ends an Unready excuses and which it does not.
func TestUnready(t *testing.T) {
	b := &Book{}
	b.Add(passOf(Stalled))
	b.Rest("1", func(types.UID) bool { return true })
	for reason, tc := range map[string]struct {
		asked   Unready
		instead []string
	}{
		"another reason": {Unready{Object: shop.ID, Reason: "Other"}, []string{"Why"}},
		"another object": {Unready{Reason: "Why"}, nil},
	} {
		j := b.Judge([]Unready{tc.asked})
		if len(j.Problems) != 1 || len(j.Missing) != 1 || !slices.Equal(j.Missing[0].Instead, tc.instead) {
			t.Errorf("%s: got %d problems and %+v, want one of each", reason, len(j.Problems), j.Missing)
		}
	}
	if j := b.Judge([]Unready{{Object: shop.ID, Reason: "Why"}}); len(j.Problems)+len(j.Missing)+len(j.Lines) != 0 {
		t.Errorf("the scenario means it, and got %+v", j)
	}
}

// TestOvercome shows that failures are reported even if a retry succeeds.
func TestOvercome(t *testing.T) {
	b := &Book{}
	b.Add(passOf(Failed))
	b.Add(passOf(Conflicted))
	b.Add(passOf(Succeeded))
	want := []string{`step "greet" of Shop default/web after "1": 1 of 3 passes failed before it succeeded: because`}
	if diff := cmp.Diff(want, b.Rest("1", func(types.UID) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.BeginAction()
	if lines := b.Rest("2", func(types.UID) bool { return true }); len(lines) > 0 {
		t.Errorf("the failure was before: %v", lines)
	}
}
