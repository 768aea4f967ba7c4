package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/record"
)

// An owner that is itself a child carries this package's annotations, and builders copy an owner's.
func TestWithoutOwnAnnotations(t *testing.T) {
	w := newServerEnv(t)
	want := func() *corev1.Service {
		s := w.service()
		s.Annotations = map[string]string{record.Applied: "v1:applied:0", record.Set: "of-the-owner", "team": "shop"}
		return s
	}
	live := w.expect(t, want(), apply.Created, "POST services")
	require.NotContains(t, live.GetAnnotations(), record.Set)
	require.Equal(t, "shop", live.GetAnnotations()["team"])
	w.expect(t, want(), apply.Unchanged, none...)
}
