//go:build !race

// Each object has its own applier, so the race detector finds nothing here. With it, the tests would take ten times as long.

// Package corpus tests the engine with manifests of all built-in kinds and of two custom resources, and with random objects, on a real API
// server. It contains only tests.
package corpus

import (
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/owned/apply"
)

// TestCorpus applies each manifest of testdata/manifests, once as a Go struct and once as an unstructured object, and waits until the
// controllers write nothing any more. Then it checks, for every field, what docs/ownedresources-apply.md promises:
//
//   - Applying again sends nothing, also after a restart of the operator.
//   - A field that another writer changes is noticed, and repaired by one write.
//   - A field that the operator drops is removed, as if the object had been created without it.
//   - Fields and list items of other writers cause no write, and our writes do not remove them.
//   - If a new version of the operator changes one field, what happens is what a preview has said.
//
// Every field of every manifest is changed and dropped together with the others of the manifest. In the typed form, fields are also changed
// and dropped one at a time: in the shortest manifest of each kind, while the controllers run; and in the first other manifest of the kind
// that has such a field, while they are paused. Each manifest has a subtest in each group: -run 'TestCorpus//deployment-web' checks one.
func TestCorpus(t *testing.T) {
	c := newCorpusEnv(t)
	files := slices.DeleteFunc(c.manifests(t), func(m manifest) bool { return !isForVersion(m) })
	var subjects []*subject
	for i := range files {
		for _, form := range []string{"typed", "unstructured"} {
			subjects = append(subjects, c.subject(t, &files[i], form))
		}
	}
	c.createAndSettle(t, subjects)
	alone, beside, untyped := groups(t, subjects)
	planned := slices.DeleteFunc(slices.Concat(alone, beside, untyped), func(s *subject) bool { return !s.plansChange() })
	share(t, alone)

	var n counts
	checkEach(t, "settled", subjects, func(t *testing.T, s *subject) { s.checkSettled(t, &n) })
	// The controllers are paused during most changes. They cannot restore a field then, so only an apply can have repaired it.
	t.Cleanup(func() { require.NoError(t, c.controlPlane.ResumeControllers()) })
	require.NoError(t, c.controlPlane.PauseControllers())
	checkEach(t, "planned", planned, func(t *testing.T, s *subject) { s.checkPlanned(t, &n) })
	checkEach(t, "alone", alone, func(t *testing.T, s *subject) { s.checkChanges(t, &n) })
	require.NoError(t, c.controlPlane.ResumeControllers())
	checkEach(t, "beside-controllers", beside, func(t *testing.T, s *subject) { s.checkChanges(t, &n) })
	checkEach(t, "unstructured", untyped, func(t *testing.T, s *subject) { s.checkChanges(t, &n) })
	t.Log(&n)
	if n.subjects.Load() == int64(len(subjects)) && os.Getenv(otherVersion) == "" { // all manifests are checked, and not a selection by -run
		n.requireEnough(t)
	}
}

// groups divides the subjects into three groups: the typed subjects that are checked while the controllers are paused, the typed subjects
// that are checked while the controllers run, and the unstructured subjects, which need the results of the typed ones. While the
// controllers run, the shortest manifest of each kind is checked, and each object that only a controller can delete.
func groups(t *testing.T, subjects []*subject) (alone, beside, untyped []*subject) {
	t.Helper()
	shortest := map[string]*subject{} // by kind
	for _, s := range subjects {      // the longest manifests come first
		if s.form == "typed" {
			shortest[s.kind(t).GVK.Kind] = s
		}
	}
	for _, s := range subjects {
		kind := s.kind(t).GVK.Kind
		switch {
		case s.form == "unstructured":
			untyped = append(untyped, s)
		case s == shortest[kind], kind == "Namespace", len(s.client.last.GetFinalizers()) > 0:
			beside = append(beside, s)
		default:
			alone = append(alone, s)
		}
	}
	return alone, beside, untyped
}

// checkEach runs a check for each subject, as a subtest.
func checkEach(t *testing.T, name string, subjects []*subject, check func(*testing.T, *subject)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		for _, s := range subjects {
			t.Run(s.String(), func(t *testing.T) {
				t.Parallel()
				check(t, s)
			})
		}
	})
}

// checkSettled runs the checks that write least. They run first, while the objects are as the controllers left them.
func (s *subject) checkSettled(t *testing.T, n *counts) {
	s.refresh(t)
	s.expect(t, s.want, apply.Unchanged, 0, "the second apply")
	s.expect(t, s.want, apply.Unchanged, 0, "the third apply")
	s.restartOperator(t, n)
	if !s.plansChange() { // the other form drops a field
		s.dropAfterCreation(t, n)
	}
	s.migrate(t)
	s.pause(t)
}

// checkPlanned checks previews of a changed desired object, as after an update of the operator.
func (s *subject) checkPlanned(t *testing.T, n *counts) {
	if s.kind(t).GVK.Kind != "Namespace" && len(s.client.last.GetFinalizers()) == 0 { // otherwise the object could not be created again while the controllers are paused
		s.refresh(t)
		s.changeDesired(t, n)
	}
}

// checkChanges drops and changes the fields of a subject: one after the other if it is typed, and all together if it is unstructured.
func (s *subject) checkChanges(t *testing.T, n *counts) {
	s.refresh(t)
	if s.form == "typed" {
		s.dropEachField(t, n)
	} else {
		s.dropAllFields(t, n)
	}
	if s.form == "typed" && s.kind(t).GVK.Kind != "CustomResourceDefinition" { // each write to a definition makes the API server build all schemas again
		s.changeEachField(t, n)
	} else {
		s.changeAllFields(t, n)
	}
	s.leaveForeignFields(t, n)
	s.refresh(t)
	s.clearManagedFields(t)
	s.expect(t, s.want, apply.Unchanged, 0, "in the end, the live object is as in the answers to the writes")
	n.subjects.Add(1)
}
