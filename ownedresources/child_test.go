package ownedresources

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A method of a child that is called after Ensure would take effect in some parts of the set and not in others.
func TestChangeAfterEnsure(t *testing.T) {
	child := Build(settings)
	set := Ensure(child)
	child.CreateOnly(func(*configMap) {})
	require.EqualError(t, set.Reconcile(t.Context(), nil, nil), "child 1, a ConfigMap: its method CreateOnly was called after Ensure: call it before")
}
