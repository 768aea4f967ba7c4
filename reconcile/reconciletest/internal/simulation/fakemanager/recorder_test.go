package fakemanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// recorder is an event recorder for all versions of controller-runtime. events.FakeRecorder has all methods only since v0.37 of client-go.
type recorder struct{ events.EventRecorder }

func (recorder) AnnotatedEventf(_, _ runtime.Object, _ map[string]string, _, _, _, _ string, _ ...any) {
}

// The compiler does not find a method of manager.Manager that a Manager lacks. This test does.
func TestAsManager(t *testing.T) {
	server, err := memoryserver.New(scheme.Scheme)
	require.NoError(t, err)
	given := &recorder{}
	m := New(Options{Scheme: scheme.Scheme, Server: server, Client: server.Client(), EventRecorder: given, Context: t.Context()})
	require.Same(t, given, m.AsManager().GetEventRecorder("any"))
	require.Equal(t, m.AsManager(), m.AsManager())
}
