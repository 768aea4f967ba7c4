package ownedresources

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restartOperator forgets what was remembered in memory.
func (s *subject) restartOperator(t *testing.T, n *counts) {
	t.Helper()
	before := s.applier
	s.applier = newApplier()
	s.applier.apiReader, s.applier.kinds = before.apiReader, before.kinds
	if s.kind(t).comparer.Covers(withData(s.want), s.client.last) {
		s.expect(t, s.want, Unchanged, 0, "after a restart")
		return
	}
	// Admission adds to a pod's tolerations, and an untyped hostNetwork: false is not shown. This was remembered.
	n.settled.Add(1)
	s.expect(t, s.want, Applied, 2, "after a restart, what the API server rewrites is sent once more")
	s.expect(t, s.want, Unchanged, 0, "after that")
}

// migrate lets our field manager take over what the POST wrote, as the first apply does.
func (s *subject) migrate(t *testing.T) {
	t.Helper()
	for {
		if s.client.last.GetAnnotations()[AnnotationApplied] != "" {
			require.NoError(t, s.byHand(t, operation("remove", path{"metadata", "annotations", AnnotationApplied}, nil)))
		}
		op, n, err := s.apply(t.Context(), s.want)
		if apierrors.IsConflict(err) { // a controller was faster
			s.refresh(t)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, Applied, op)
		require.LessOrEqual(t, n, int64(2), "the first apply after the POST migrates fields, then applies")
		break
	}
	s.expect(t, s.want, Unchanged, 0, "after the migration")
}

// migrationWrites is 1 after a POST, or after a repair that had to replace whole lists: the next write migrates fields first.
func (s *subject) migrationWrites() int64 {
	if strings.HasPrefix(s.client.last.GetAnnotations()[AnnotationApplied], string(byApply)) {
		return 0
	}
	return 1
}

// recreate deletes the live object and lets it be created again.
func (s *subject) recreate(t *testing.T) {
	t.Helper()
	deleted := s.client.last
	require.NoError(t, s.other.Delete(t.Context(), deleted, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	require.Eventually(t, func() bool {
		return apierrors.IsNotFound(s.other.Get(t.Context(), client.ObjectKeyFromObject(s.want), s.kind(t).empty()))
	}, 20*time.Second, 20*time.Millisecond)
	s.client.last = nil
	s.applier.writes.Observe(deleted) // as its watch would
	s.expect(t, s.want, Created, 1, "deleted by hand")
	s.refresh(t)
	s.migrate(t)
	s.pause(t)
}

// pause lets a Deployment's controller look on, or every change would replace pods. The field is foreign.
func (s *subject) pause(t *testing.T) {
	t.Helper()
	at := path{"spec", "paused"}
	if _, ours := at.in(s.sent(t)); ours || s.kind(t).gvk.Kind != "Deployment" {
		return
	}
	require.NoError(t, s.byHand(t, operation("add", at, true)))
	s.expect(t, s.want, Unchanged, 0, "paused by somebody else")
}
