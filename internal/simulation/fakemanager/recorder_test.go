package fakemanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// The compiler does not see whether a Manager lacks a method of manager.Manager.
func TestAsManager(t *testing.T) {
	server, err := memoryserver.New(scheme.Scheme)
	require.NoError(t, err)
	recorder := &events.FakeRecorder{}
	m := New(Options{Scheme: scheme.Scheme, Server: server, Client: server.Client(), EventRecorder: recorder, Context: t.Context()})
	require.Same(t, recorder, m.AsManager().GetEventRecorder("any"))
	require.Equal(t, m.AsManager(), m.AsManager())
}
