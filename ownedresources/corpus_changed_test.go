package ownedresources

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changeEachField changes each field of ours in the live object, which must be repaired.
func (s *subject) changeEachField(t *testing.T, n *counts) {
	t.Helper()
	var fixed immutableFields
	for _, at := range fieldsOf(s.sent(t)) {
		before := s.live(t)
		if change, _ := s.editToOtherValue(t, at, &fixed, n); change != nil {
			s.repair(t, []path{at}, before, n)
		}
	}
}

// changeAllFields changes each field of ours as a dry run, which must be noticed. Then it changes all of them, or as
// many as the API server takes together, which must be repaired.
func (s *subject) changeAllFields(t *testing.T, n *counts) {
	t.Helper()
	k, want := s.kind(t), withData(s.want)
	changes := map[string]map[string]any{}
	var changed []path
	var fixed immutableFields
	for _, at := range fieldsOf(s.sent(t)) {
		change, edited := s.editToOtherValue(t, at, &fixed, n, client.DryRunAll)
		if change == nil {
			continue
		}
		n.noticed.Add(1)
		if k.comparer.Covers(want, edited) {
			t.Errorf("%v by hand: not noticed", change)
		}
		if change["op"] == "replace" {
			changes[at.String()] = change
			changed = append(changed, at)
		}
	}
	bisect(changed, func(some []path) bool {
		var all []map[string]any
		for _, at := range some {
			all = append(all, changes[at.String()])
		}
		before := s.live(t)
		return s.byHand(t, all...) == nil && s.repair(t, some, before, n)
	})
}

// repair applies after the fields were changed by hand, and reports whether the API server let it.
func (s *subject) repair(t *testing.T, changed []path, before map[string]any, n *counts) bool {
	t.Helper()
	edited := s.live(t)
	most := s.migrationWrites() + 1
	op, sent, err := s.apply(t.Context(), s.want)
	for apierrors.IsConflict(err) { // a controller was faster
		s.refresh(t)
		op, sent, err = s.apply(t.Context(), s.want)
	}
	if isRefusal(err) {
		if len(changed) == 1 {
			n.stuck.Add(1)
			t.Logf("STUCK %v changed: %v", changed, err)
			if !matches(unrepairable, changed[0]) {
				t.Errorf("%v changed and cannot be repaired: %v\n%s", changed, err, cmp.Diff(before, edited))
			}
		}
		s.recreate(t)
		return false
	}
	require.NoError(t, err, "changed %v", changed)
	if op != Applied || sent < 1 || sent > most {
		t.Errorf("changed %v: %s by %d writes; (-before, +edited)\n%s", changed, op, sent, cmp.Diff(s.normalized(t, before, serverSet), s.normalized(t, edited, serverSet)))
		s.recreate(t)
		return true
	}
	n.repaired.Add(int64(len(changed)))
	s.expect(t, s.want, Unchanged, 0, "after a repair")
	after := s.live(t)
	d := cmp.Diff(s.normalized(t, before, serverSet), s.normalized(t, after, serverSet))
	if d == "" {
		return true
	}
	n.leftovers.Add(1)
	for _, at := range changed {
		old, _ := at.in(before)
		if now, _ := at.in(after); !reflect.DeepEqual(withoutFields(old, serverSet), withoutFields(now, serverSet)) && !containsItem(at, before, after) && !matches(undroppable, at) {
			t.Errorf("changed %s and repaired (-before, +after)\n%s", at, d)
		}
	}
	if s.undo(t, before) != nil {
		s.recreate(t)
	}
	s.expect(t, s.want, Unchanged, 0, "what a changed key left behind is gone")
	return true
}

// editToOtherValue changes a field by hand to a value that the API server takes. It gives the change and the answer; nil if
// the API server takes none.
func (s *subject) editToOtherValue(t *testing.T, at path, fixed *immutableFields, n *counts, options ...client.PatchOption) (map[string]any, client.Object) {
	t.Helper()
	old, there := at.in(s.live(t))
	if !there {
		sent, _ := at.in(s.sent(t))
		require.Contains(t, []any{int64(0), false, "", nil}, withoutFields(sent, nil), "%s was sent and is not in the live object", at)
		return nil, nil
	}
	if at.String() == "/metadata/annotations" {
		return nil, nil // our mark would go with them: more than one field
	}
	n.fields.Add(1)
	if fixed.contains(at) {
		n.refused.Add(1)
		return nil, nil
	}
	for _, other := range otherValues(at, old) {
		change := operation("replace", at, other)
		if other == nil {
			change = operation("remove", at, nil)
		}
		edited, err := s.edit(t, []map[string]any{change}, options...)
		if err != nil {
			require.True(t, isRefusal(err), "%s by hand: %v", at, err)
			if fixed.noteIfImmutable(s, t, at, err) {
				break
			}
			continue
		}
		if len(options) == 0 {
			s.client.last = edited
		}
		if now, _ := at.in(contentOf(t, edited)); !reflect.DeepEqual(now, old) && !restoredByServer(at, now, old) {
			return change, edited
		}
	}
	n.refused.Add(1)
	return nil, nil
}

// restoredByServer reports whether the API server gave a removed map again: a Job without labels gets those of its pods.
func restoredByServer(at path, now, old any) bool {
	if _, item := at[len(at)-1].(int); item {
		return false // now is the next item
	}
	n, _ := now.(map[string]any)
	o, _ := old.(map[string]any)
	for k, v := range o {
		if given := n[k]; !reflect.DeepEqual(given, v) {
			return false
		}
	}
	return len(o) > 0
}

// containsItem reports whether the item that at leads through is in its list as before.
func containsItem(at path, before, after map[string]any) bool {
	for _, list := range at.lists() {
		item, _ := at[:len(list)+1].in(before)
		items, _ := list.in(after)
		now, _ := items.([]any)
		for _, other := range now {
			if reflect.DeepEqual(withoutFields(item, serverSet), withoutFields(other, serverSet)) {
				return true
			}
		}
	}
	return false
}

// undo removes what a change by hand left behind.
func (s *subject) undo(t *testing.T, before map[string]any) error {
	t.Helper()
	var ops []map[string]any
	for field, value := range before {
		switch field {
		case "apiVersion", "kind", "status":
		case "metadata":
			metadata := value.(map[string]any)
			for _, shared := range []string{"labels", "annotations"} {
				if v := metadata[shared]; v != nil {
					ops = append(ops, operation("add", path{"metadata", shared}, v))
				}
			}
		default:
			ops = append(ops, operation("add", path{field}, value))
		}
	}
	return s.byHand(t, ops...)
}
