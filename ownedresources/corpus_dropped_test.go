package ownedresources

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dropEachField wants the object without one of its fields, which must leave it as if it had been created so.
func (s *subject) dropEachField(t *testing.T, n *counts) {
	t.Helper()
	before := s.normalized(t, s.live(t), serverSet)
	full := s.sent(t)
	var last path // the field that was dropped before, and comes back with the next drop
	var fixed immutableFields
	for _, at := range fieldsOf(full) {
		if _, item := at[len(at)-1].(int); item {
			if v, _ := at.in(full); isLeaf(v) {
				continue // part of a list's value
			}
		}
		if fixed.contains(at) {
			n.dropRefused.Add(1)
			continue
		}
		content := withoutPath(full, at).(map[string]any)
		want := s.decoded(t, content)
		most := s.migrationWrites() + 1
		op, sent, err := s.apply(t.Context(), want)
		if isRefusal(err) && s.restoreIsRefused(t, last, n) {
			s.recreate(t)
			op, sent, err = s.apply(t.Context(), want)
		}
		if isRefusal(err) {
			n.dropRefused.Add(1)
			fixed.noteIfImmutable(s, t, at, err)
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
		if matches(undroppable, at) {
			s.recreate(t)
			last = nil
			continue
		}
		s.manifest.droppable = append(s.manifest.droppable, at)
		s.compareWithNew(t, want, at.String(), n)
	}
	if s.restoreIsRefused(t, last, n) {
		s.recreate(t)
	}
	if d := cmp.Diff(before, s.normalized(t, s.live(t), serverSet)); d != "" {
		t.Errorf("all fields again (-before, +after)\n%s", d)
	}
	s.expect(t, s.want, Unchanged, 0, "after the last field came back")
}

// compareWithNew compares the live object with one that is just created like want.
func (s *subject) compareWithNew(t *testing.T, want client.Object, dropped string, n *counts) {
	t.Helper()
	fresh := s.asCreated(t, want)
	if fresh == nil {
		n.uncompared.Add(1)
		return
	}
	if d := cmp.Diff(s.normalized(t, fresh, serverKept), s.normalized(t, s.live(t), serverKept)); d != "" {
		t.Errorf("dropped %s (-as if created so, +live)\n%s", dropped, d)
	}
}

// dropAllFields wants the object without all the fields that the typed form could do without, or without as many of
// them as the API server lets go together.
func (s *subject) dropAllFields(t *testing.T, n *counts) {
	t.Helper()
	full := s.sent(t)
	var droppable []path
	for _, at := range s.manifest.droppable {
		if v, there := at.in(full); there && isLeaf(v) && at.field() != "replicas" {
			droppable = append(droppable, at)
		}
	}
	bisect(droppable, func(some []path) bool {
		content := full
		for _, at := range slices.Backward(some) {
			content = withoutPath(content, at).(map[string]any)
		}
		want := s.decoded(t, content)
		if _, _, err := s.apply(t.Context(), want); isRefusal(err) {
			return false
		}
		n.dropped.Add(int64(len(some)))
		s.compareWithNew(t, want, "many fields", n)
		if _, _, err := s.apply(t.Context(), s.want); isRefusal(err) {
			n.stuck.Add(1)
			s.recreate(t)
		}
		return true
	})
	s.expect(t, s.want, Unchanged, 0, "all fields again")
}

// restoreIsRefused wants the whole object again, and reports whether the API server refuses that.
func (s *subject) restoreIsRefused(t *testing.T, last path, n *counts) bool {
	t.Helper()
	_, _, err := s.apply(t.Context(), s.want)
	if !isRefusal(err) {
		require.NoError(t, err, "all fields again")
		return false
	}
	n.stuck.Add(1)
	t.Logf("STUCK %s dropped: %v", last, err)
	if !matches(unrepairable, last) {
		t.Errorf("%s was dropped and cannot come back: %v", last, err)
	}
	return true
}
