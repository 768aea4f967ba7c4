package reconcile

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestMemory(t *testing.T) {
	name, other := types.NamespacedName{Namespace: "ns", Name: "a"}, types.NamespacedName{Namespace: "ns", Name: "b"}
	tests := map[string]struct {
		reason string
		do     func(m *memory)
		want   int // the number of remembered objects
	}{
		"Nothing":  {reason: "a pass that succeeds leaves nothing", do: func(m *memory) { m.resetFailures(name); m.clearWarning(name, "one") }},
		"Failure":  {reason: "the backoff needs the number of failures", do: func(m *memory) { m.addFailure(name) }, want: 1},
		"Recovery": {reason: "an object that succeeds again takes no memory", do: func(m *memory) { m.addFailure(name); m.resetFailures(name) }},
		"Warnings": {reason: "the warning of one step does not clear that of another", do: func(m *memory) {
			m.addWarning(name, "one", "x")
			m.addWarning(name, "two", "x")
			m.clearWarning(name, "one")
		}, want: 1},
		"AllWarnings": {reason: "with its last warning the object is dropped", do: func(m *memory) { m.addWarning(name, "one", "x"); m.clearWarning(name, "one") }},
		"Forgotten": {reason: "forget drops everything of this object, and nothing of another", do: func(m *memory) {
			for _, n := range []types.NamespacedName{name, other} {
				m.addFailure(n)
				m.addWarning(n, "one", "x")
				m.setCurrent(n, "u")
				m.setCleanedUp(n, "u")
			}
			m.forget(name)
		}, want: 1},
	}
	for testName, tc := range tests {
		t.Run(testName, func(t *testing.T) {
			m := &memory{}
			tc.do(m)
			require.Len(t, m.objects, tc.want, tc.reason)
		})
	}
	m := &memory{}
	m.setCurrent(name, "u")
	require.True(t, m.isCurrent(name, "u"))
	require.False(t, m.isCurrent(name, "v"), "another object of the same name")
	require.False(t, m.isCleanedUp(name, ""), "an object without a UID cannot be recognised")
	require.True(t, m.addWarning(name, "one", "x"))
	require.False(t, m.addWarning(name, "one", "x"), "the same message again is not reported")
	require.True(t, m.addWarning(name, "one", "y"))
}
