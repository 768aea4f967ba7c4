package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// An owner that is a child itself carries our annotations; builders copy an owner's.
func TestCopiedAnnotationsAreNotOurs(t *testing.T) {
	w := newWorld(t)
	want := func() *corev1.Service {
		s := w.service()
		s.Annotations = map[string]string{AnnotationApplied: "v1:applied:0", AnnotationSet: "of-the-owner", "team": "shop"}
		return s
	}
	live := w.expect(t, want(), Created, "POST services")
	require.NotContains(t, live.GetAnnotations(), AnnotationSet)
	require.Equal(t, "shop", live.GetAnnotations()["team"])
	w.expect(t, want(), Unchanged, none...)
}
