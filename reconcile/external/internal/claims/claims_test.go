package claims

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func object(name, uid string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

func nameOf(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

func TestTable(t *testing.T) {
	anyKey := func(string, Holder) bool { return true }
	alice, bob := object("alice", "1"), object("bob", "2")
	for name, tc := range map[string]struct {
		reason string
		before func(table *Table)
		rival  func(key string, h Holder) bool
		want   string // the holder that Take returns for bob, who wants the keys a and b of group g
	}{
		"free":          {"nobody holds anything", func(*Table) {}, anyKey, ""},
		"held":          {"it was acquired first", func(table *Table) { table.Take(alice, "g", []string{"a"}, anyKey) }, anyKey, "alice"},
		"another group": {"groups are apart", func(table *Table) { table.Take(alice, "h", []string{"a"}, anyKey) }, anyKey, ""},
		"another key":   {"the caller says which keys count", func(table *Table) { table.Take(alice, "g", []string{"c"}, anyKey) }, func(key string, _ Holder) bool { return key == "a" }, ""},
		"its own":       {"an object is not a rival of itself", func(table *Table) { table.Take(bob, "g", []string{"a"}, anyKey) }, anyKey, ""},
		"dropped": {"it is free at once", func(table *Table) {
			table.Take(alice, "g", []string{"a", "c"}, anyKey)
			table.Keep(nameOf("alice"), nil)
		}, anyKey, ""},
		"partly dropped": {"what is kept is held", func(table *Table) {
			table.Take(alice, "g", []string{"a", "c"}, anyKey)
			table.Keep(nameOf("alice"), []string{"c"})
		}, anyKey, "alice"},
		"not its own to drop": {"another object has the key", func(table *Table) {
			table.Take(alice, "g", []string{"a"}, anyKey)
			table.Take(bob, "h", []string{"a"}, anyKey)
			table.Keep(nameOf("bob"), nil)
		}, anyKey, "alice"},
	} {
		t.Run(name, func(t *testing.T) {
			table := &Table{}
			tc.before(table)
			got := ""
			if h := table.Take(bob, "g", []string{"a", "b"}, tc.rival); h != nil {
				got = h.Name
			}
			require.Equal(t, tc.want, got, tc.reason)
			table.Keep(nameOf("alice"), nil)
			require.Nil(t, table.Take(bob, "g", []string{"a", "b"}, anyKey))
			table.Keep(nameOf("bob"), nil)
			require.Empty(t, table.holders, "nothing is remembered of what nobody holds")
			require.Empty(t, table.groups)
		})
	}
}

// TestTakeNothing: another object holds one of two keys, so obj gets neither of them.
func TestTakeNothing(t *testing.T) {
	table := &Table{}
	isSame := func(key string, _ Holder) bool { return key == "b" }
	require.Nil(t, table.Take(object("alice", "1"), "g", []string{"b"}, isSame))
	require.NotNil(t, table.Take(object("bob", "2"), "g", []string{"a", "b"}, isSame))
	require.Nil(t, table.Take(object("carol", "3"), "g", []string{"a"}, func(key string, _ Holder) bool { return key == "a" }))
}
