package ownedresources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// An owner that is itself a child carries this package's annotations, and builders copy an owner's.
func TestWithoutOwnAnnotations(t *testing.T) {
	w := newTestEnv(t)
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

func TestParseLastApplied(t *testing.T) {
	tests := map[string]struct {
		reason     string
		annotation string
		want       lastApplied
	}{
		"Created":   {reason: "The object was written by POST.", annotation: "v1:created:0a", want: lastApplied{method: byCreate, hash: "0a"}},
		"Applied":   {reason: "The object was applied.", annotation: "v1:applied:0a", want: lastApplied{method: byApply, hash: "0a"}},
		"Replicas":  {reason: "Replicas were sent.", annotation: "v1:applied:0a:replicas", want: lastApplied{method: byApply, hash: "0a", replicas: true}},
		"Rewritten": {reason: "The API server has stored something else.", annotation: "v1:applied:0a:rewritten-0b:replicas", want: lastApplied{method: byApply, hash: "0a", rewritten: "0b", replicas: true}},
		"Absent":    {reason: "The object was written by others.", annotation: "", want: lastApplied{method: byOthers}},
		"Later":     {reason: "A later version of the format is not known.", annotation: "v2:applied:0a:replicas", want: lastApplied{method: byOthers}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := parseLastApplied(tc.annotation)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(lastApplied{})); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
			if got.method != byOthers {
				require.Equal(t, tc.annotation, got.String())
			}
		})
	}
}
