package simulation

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/run"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// noteTwins inserts a finding if the user has two objects of one name in two namespaces, and the operator writes one and the same object
// for both in turn. The further run that shows it is done only if the operator creates an object outside of the namespace of the user's
// object.
func (e *explorer) noteTwins() {
	shared := e.createdElsewhere()
	if len(shared) == 0 {
		return
	}
	twins := &result.Result{}
	inSlot(func() {
		twins = e.scenario.Guarded(func(s *run.Scenario) *result.Result { return s.RunWithTwins(e.t) })
	})
	if twins.Err == nil || twins.Unfinished != "" || failure.KindOf(twins.Err) != kinds.DoesNotRest {
		return // an operator may refuse the second object of that name: it fails too, and is right
	}
	names := slices.DeleteFunc(shared, func(name string) bool { return !mentions(twins.Err.Error(), name) })
	if len(names) == 0 {
		return
	}
	e.note(Failure{
		Kind: kinds.ChangesForeign, Cause: "two owners of one name share an object", Trace: twins.Trace.SinceFault(), trace: twins.Trace,
		Err: fmt.Errorf("two objects of the user that have the same name in two namespaces (one ends in %q) share what the operator creates: %s\n"+
			"Let the name have the namespace in it, or refuse an object that was created for another owner. The run with both: %w", run.TwinSuffix, strings.Join(names, ", "), twins.Err),
	})
}

// mentions reports whether a text contains the name of an object. A longer name that begins with it does not count.
func mentions(text, object string) bool {
	return regexp.MustCompile(`(^|[^\w./-])` + regexp.QuoteMeta(object) + `($|[^\w./-])`).MatchString(text)
}

// createdElsewhere returns the objects that the operator has created outside of the namespaces of the user's objects of custom kinds, in
// the run without faults. It leaves out objects whose names the user chooses in a spec.
func (e *explorer) createdElsewhere() (names []string) {
	namespaces, chosen := map[string]bool{}, map[string]bool{}
	of := &e.baseline.Operations
	changes := e.baseline.Server.Changes(0)
	for i := range changes {
		c := &changes[i]
		if id := (request.ObjectID{Kind: c.GVK, Name: c.Key}); of.Created[id] || c.New == nil || c.Key.Namespace == "" || !id.IsCustom() {
			continue
		}
		namespaces[c.Key.Namespace] = true
		addTexts(state.SpecOf(c.New), chosen)
	}
	for id := range of.Created {
		if len(namespaces) > 0 && !namespaces[id.Name.Namespace] && !chosen[id.Name.Name] && !state.IsTransient(id.Kind.Kind) {
			names = append(names, id.String())
		}
	}
	slices.Sort(names)
	return names
}

// addTexts adds each text in a JSON value.
func addTexts(v any, to map[string]bool) {
	switch v := v.(type) {
	case string:
		to[v] = true
	case []any:
		for _, item := range v {
			addTexts(item, to)
		}
	case map[string]any:
		for _, value := range v {
			addTexts(value, to)
		}
	}
}
