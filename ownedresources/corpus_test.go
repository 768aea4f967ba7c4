package ownedresources

import (
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// corpusPlane runs controllers, unlike controlPlane: they write to the same objects as the tests.
var corpusPlane = controlplane.Shared(controlplane.WithControllers(), controlplane.WithCRDs("testdata/gadgets.yaml", "testdata/widgets.yaml"))

// TestCorpus applies each manifest of testdata/corpus, once as a Go struct and once as an unstructured object, and waits
// until the controllers have settled. Then it checks, for every single field, what docs/ownedresources-apply.md promises:
//
//   - Applying again sends nothing, also after a restart of the operator.
//   - A field that somebody else changes is noticed and repaired by one write.
//   - A field that is dropped goes, as if the object had been created without it.
//   - Fields and list items of others cause no write, and survive ours.
//
// Each manifest has a subtest in each group: -run 'TestCorpus//deployment-web' checks one.
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

	var n counts
	checkEach(t, "settled", subjects, func(t *testing.T, s *subject) { s.checkSettled(t, &n) })
	// The controllers are paused during most changes: they cannot restore a field, so only an apply can have repaired it.
	t.Cleanup(func() { require.NoError(t, c.controlPlane.ResumeControllers()) })
	require.NoError(t, c.controlPlane.PauseControllers())
	checkEach(t, "alone", alone, func(t *testing.T, s *subject) { s.checkChanges(t, &n) })
	require.NoError(t, c.controlPlane.ResumeControllers())
	checkEach(t, "beside-controllers", beside, func(t *testing.T, s *subject) { s.checkChanges(t, &n) })
	checkEach(t, "unstructured", untyped, func(t *testing.T, s *subject) { s.checkChanges(t, &n) })
	t.Log(&n)
	if n.subjects.Load() == int64(len(subjects)) && os.Getenv(otherVersion) == "" { // all of them, and not a selection by -run
		n.requireEnough(t)
	}
}

// groups returns the typed subjects whose changes are checked while the controllers are paused, the typed subjects that are
// checked beside running controllers, and the unstructured subjects. The last need the results of the typed ones. The shortest
// manifest of each kind is checked beside running controllers, and so is what only a controller deletes.
func groups(t *testing.T, subjects []*subject) (alone, beside, untyped []*subject) {
	t.Helper()
	shortest := map[string]*subject{} // by kind
	for _, s := range subjects {      // the longest manifests first
		if s.form == "typed" {
			shortest[s.kind(t).gvk.Kind] = s
		}
	}
	for _, s := range subjects {
		kind := s.kind(t).gvk.Kind
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

// checkEach runs a check of each subject as a subtest.
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

// checkSettled runs the checks that write least. They come first, so they find the objects as the controllers left them.
func (s *subject) checkSettled(t *testing.T, n *counts) {
	s.refresh(t)
	s.expect(t, s.want, Unchanged, 0, "the second apply")
	s.expect(t, s.want, Unchanged, 0, "the third apply")
	s.restartOperator(t, n)
	s.migrate(t)
	s.pause(t)
}

// checkChanges drops and changes the fields of a subject: one after the other if it is typed, all together if it is unstructured.
func (s *subject) checkChanges(t *testing.T, n *counts) {
	s.refresh(t)
	if s.form == "typed" {
		s.dropEachField(t, n)
	} else {
		s.dropAllFields(t, n)
	}
	if s.form == "typed" && s.kind(t).gvk.Kind != "CustomResourceDefinition" { // each write to one makes the API server build all schemas again
		s.changeEachField(t, n)
	} else {
		s.changeAllFields(t, n)
	}
	s.leaveForeignFields(t, n)
	s.refresh(t)
	s.clearManagedFields(t)
	s.expect(t, s.want, Unchanged, 0, "in the end, the live object is as in the answers to the writes")
	n.subjects.Add(1)
}

// counts is what was checked, so that a test that checks nothing fails.
type counts struct {
	subjects atomic.Int64 // manifests, in two forms each
	settled  atomic.Int64 // subjects whose live object differs from what was sent

	fields    atomic.Int64 // values, structs, lists and maps of ours that were to be changed by hand
	refused   atomic.Int64 // by the API server, with every value
	noticed   atomic.Int64 // of these, in a dry run
	repaired  atomic.Int64
	stuck     atomic.Int64 // could not be repaired, see unrepairable
	leftovers atomic.Int64 // repairs that left an item of somebody else

	dropped     atomic.Int64 // fields that were dropped
	dropRefused atomic.Int64 // fields that the API server requires, or that are immutable
	uncompared  atomic.Int64 // drops whose result was not compared with a new object

	foreign atomic.Int64 // fields of others that survived
}

func (n *counts) String() string {
	return fmt.Sprintf(`%d manifests in two forms each, %d of them rewritten by the API server
%d fields to be changed by hand: %d refused by the API server, %d noticed in a dry run, %d repaired by one write (%d writes left a foreign item), %d could not be repaired
%d fields dropped, %d more refused by the API server, %d times not compared with a new object
%d foreign fields left alone`,
		n.subjects.Load()/2, n.settled.Load(),
		n.fields.Load(), n.refused.Load(), n.noticed.Load(), n.repaired.Load(), n.leftovers.Load(), n.stuck.Load(),
		n.dropped.Load(), n.dropRefused.Load(), n.uncompared.Load(),
		n.foreign.Load())
}

// requireEnough fails unless a run over all manifests checked about as much as it did when it was written.
func (n *counts) requireEnough(t *testing.T) {
	t.Helper()
	require.GreaterOrEqual(t, n.subjects.Load(), int64(2*95))
	require.GreaterOrEqual(t, n.repaired.Load(), int64(2500))
	require.GreaterOrEqual(t, n.noticed.Load(), int64(1650))
	require.GreaterOrEqual(t, n.dropped.Load(), int64(1150))
	require.GreaterOrEqual(t, n.foreign.Load(), int64(600))
	require.Less(t, n.refused.Load(), n.fields.Load()/2, "what the API server refuses proves nothing")
	require.Less(t, n.stuck.Load(), n.repaired.Load()/20)
}
