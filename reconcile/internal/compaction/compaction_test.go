package compaction

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// Strings must not grow for ever, because names come and go while the operator runs.
func TestStringsAreBounded(t *testing.T) {
	s := &Strings{}
	for i := range 3 * maxStrings {
		s.share(fmt.Sprint(i))
		require.LessOrEqual(t, len(s.known), maxStrings)
	}
}

func TestEmptyStructsAreShared(t *testing.T) {
	pod := func() *corev1.PodSpec { return &corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}} }
	s := &Strings{}
	one, two, three := pod(), pod(), pod()
	three.SecurityContext.RunAsNonRoot = new(true)
	for _, p := range []*corev1.PodSpec{one, two, three, one} {
		s.Compact(p)
	}
	require.Equal(t, pod(), one)
	require.Same(t, one.SecurityContext, two.SecurityContext)
	require.NotSame(t, one.SecurityContext, three.SecurityContext, "it is not empty")
	require.True(t, *three.SecurityContext.RunAsNonRoot)
	require.NotSame(t, one.SecurityContext, one.DeepCopy().SecurityContext, "a copy has its own")
	empty := &corev1.PodSpec{}
	s.Compact(empty)
	require.Nil(t, empty.SecurityContext)
}
