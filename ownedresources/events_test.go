package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func deletionOf(obj client.Object) event.DeleteEvent { return event.DeleteEvent{Object: obj} }

func ownerOf(t *testing.T, w *world) *owner {
	t.Helper()
	o, err := newOwner(w.owner, w.client)
	require.NoError(t, err)
	return &o
}
