package ownedresources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dropEachField wants the object without one of its fields, which must leave it as if it had been created so.
func (s *subject) dropEachField(t *testing.T, n *tally) {
	t.Helper()
	before := s.essence(t, s.live(t), given)
	full := s.sent(t)
	var last path // the field that was dropped before, and comes back with the next drop
	var fixed fixed
	for _, at := range fieldsOf(full) {
		if _, item := at[len(at)-1].(int); item {
			if v, _ := at.in(full); isValue(v) {
				continue // part of a list's value
			}
		}
		if fixed.holds(at) {
			n.dropRefused.Add(1)
			continue
		}
		content := removed(full, at).(map[string]any)
		want := s.decoded(t, content)
		most := s.migrating() + 1
		op, sent, err := s.apply(t.Context(), want)
		if refused(err) && s.stuck(t, last, n) {
			s.anew(t)
			op, sent, err = s.apply(t.Context(), want)
		}
		if refused(err) {
			n.dropRefused.Add(1)
			fixed.note(s, t, at, err)
			last = nil
			continue
		}
		require.NoError(t, err, "drop %s", at)
		if op == Unchanged {
			continue
		}
		last = at
		n.dropped.Add(1)
		if at.field() != "replicas" { // which are handed over
			require.LessOrEqual(t, sent, most, "writes to drop %s", at)
		}
		if matches(lasting, at) {
			s.anew(t)
			last = nil
			continue
		}
		s.manifest.droppable = append(s.manifest.droppable, at)
		s.compareWithNew(t, want, at.String(), n)
	}
	if s.stuck(t, last, n) {
		s.anew(t)
	}
	if d := cmp.Diff(before, s.essence(t, s.live(t), given)); d != "" {
		t.Errorf("all fields again (-before, +after)\n%s", d)
	}
	s.expect(t, s.want, Unchanged, 0, "after the last field came back")
}

// compareWithNew compares the live object with one that is just created like want.
func (s *subject) compareWithNew(t *testing.T, want client.Object, dropped string, n *tally) {
	t.Helper()
	fresh := s.asCreated(t, want)
	if fresh == nil {
		n.uncompared.Add(1)
		return
	}
	if d := cmp.Diff(s.essence(t, fresh, allocated), s.essence(t, s.live(t), allocated)); d != "" {
		t.Errorf("dropped %s (-as if created so, +live)\n%s", dropped, d)
	}
}

// dropAllFields wants the object without all the fields that the typed form could do without, or without as many of
// them as the API server lets go together.
func (s *subject) dropAllFields(t *testing.T, n *tally) {
	t.Helper()
	full := s.sent(t)
	var droppable []path
	for _, at := range s.manifest.droppable {
		if v, there := at.in(full); there && isValue(v) && at.field() != "replicas" {
			droppable = append(droppable, at)
		}
	}
	halve(droppable, func(some []path) bool {
		content := full
		for _, at := range slices.Backward(some) {
			content = removed(content, at).(map[string]any)
		}
		want := s.decoded(t, content)
		if _, _, err := s.apply(t.Context(), want); refused(err) {
			return false
		}
		n.dropped.Add(int64(len(some)))
		s.compareWithNew(t, want, "many fields", n)
		if _, _, err := s.apply(t.Context(), s.want); refused(err) {
			n.stuck.Add(1)
			s.anew(t)
		}
		return true
	})
	s.expect(t, s.want, Unchanged, 0, "all fields again")
}

// stuck wants the whole object again, and reports whether the API server refuses that.
func (s *subject) stuck(t *testing.T, last path, n *tally) bool {
	t.Helper()
	_, _, err := s.apply(t.Context(), s.want)
	if !refused(err) {
		require.NoError(t, err, "all fields again")
		return false
	}
	n.stuck.Add(1)
	t.Logf("STUCK %s dropped: %v", last, err)
	if !matches(sticky, last) {
		t.Errorf("%s was dropped and cannot come back: %v", last, err)
	}
	return true
}
