package reconciletest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// The user writes objects of both versions, and the operator watches one.
func TestVersions(t *testing.T) {
	report := reconciletest.Explore(t, storeOperator{pass: furnish}.scenario(
		reconciletest.Create(oldStore(3)),
		reconciletest.Change(store(), func(s *Store) { s.Spec.Theme = "wood" }),
		reconciletest.Change(oldStore(0), func(s *OldStore) { s.Spec.Size = 5 }).Then(hasRoom("5", "wood")),
		reconciletest.Delete(oldStore(0)),
	))
	assert.Positive(t, report.Runs)
}

// hasRoom returns a check of the ConfigMap that the operator writes for a store.
func hasRoom(shelves, theme string) func(*reconciletest.Env) error {
	room := config("web")
	room.Data = map[string]string{"shelves": shelves, "theme": theme}
	return reconciletest.Has(room)
}

// An object that is stored in version v1 can be read and listed in version v1alpha1 too.
func TestEachVersionCanBeRead(t *testing.T) {
	s := storeOperator{pass: furnish}.scenario(reconciletest.Create(store(func(s *Store) { s.Spec.Theme = "wood" })))
	reconciletest.Run(t, s, func(t *testing.T, env *reconciletest.Env) {
		old := &OldStore{}
		require.NoError(t, env.Client.Get(t.Context(), client.ObjectKeyFromObject(store()), old))
		assert.Equal(t, map[string]string{themeKey: "wood"}, old.Annotations, "The conversion keeps what the version lacks.")
		assert.Equal(t, 1, old.Spec.Size, "The default of version v1 is set when the object is stored.")
		all := &OldStoreList{}
		require.NoError(t, env.Client.List(context.Background(), all))
		assert.Len(t, all.Items, 1)
	})
}
