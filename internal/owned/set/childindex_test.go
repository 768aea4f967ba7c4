package set

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/record"
)

func indexedName(kind int32, name string) childName {
	return childName{kind, types.NamespacedName{Namespace: "ns", Name: name}}
}

func TestChildIndex(t *testing.T) {
	for _, n := range []int{1, 3, longList, longList + 1, 3 * longList} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			x := newChildIndex()
			for range 2 { // the cache shows each object more than once
				for i := range n {
					x.add("o", indexedName(int32(i%2), fmt.Sprint(i)), nil)
				}
			}
			x.add("other", indexedName(0, "0"), nil)
			before := x.childrenOf("o")
			require.Len(t, before, n)
			read := append([]childName(nil), before...)

			for i := range n {
				x.removeAbsent("o", indexedName(0, "unknown"), x.state())
				require.Contains(t, x.childrenOf("o"), indexedName(int32(i%2), fmt.Sprint(i)))
				x.removeAbsent("o", indexedName(int32(i%2), fmt.Sprint(i)), x.state())
				require.Len(t, x.childrenOf("o"), n-i-1)
				require.NotContains(t, x.childrenOf("o"), indexedName(int32(i%2), fmt.Sprint(i)))
				x.add("o", indexedName(5, "again"), nil)
				x.removeAbsent("o", indexedName(5, "again"), x.state())
			}
			require.Equal(t, read, before, "a reader keeps what it has read")
			require.Len(t, x.byOwner, 1, "an owner without children is forgotten")
			require.Len(t, x.childrenOf("other"), 1)
		})
	}
}

// The cache may show an object right after a reader has not found it.
func TestRemoveAbsentAfterItAppeared(t *testing.T) {
	x := newChildIndex()
	x.add("o", indexedName(0, "a"), nil)
	before := x.state()
	x.add("o", indexedName(0, "a"), nil)
	x.removeAbsent("o", indexedName(0, "a"), before)
	require.Len(t, x.childrenOf("o"), 1)
}

func TestRemoveKind(t *testing.T) {
	x := newChildIndex()
	for i := range 3 * longList {
		x.add("both", indexedName(int32(i%2), fmt.Sprint(i)), nil)
	}
	x.add("one", indexedName(1, "a"), nil)
	x.removeKind(1)
	require.Len(t, x.childrenOf("both"), 3*longList/2)
	require.NotContains(t, x.byOwner, types.UID("one"))
	x.removeAbsent("both", indexedName(0, "0"), x.state())
	require.Len(t, x.childrenOf("both"), 3*longList/2-1)
}

func TestFormerOwners(t *testing.T) {
	x := newChildIndex()
	web := record.Name{Kind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}
	x.add("former", indexedName(0, "a"), &record.Mark{Owner: web, UID: "former"})
	x.add("now", indexedName(0, "b"), &record.Mark{Owner: web, UID: "now"})
	require.Equal(t, []types.UID{"former"}, x.formerOwners(web, "now"))
	require.Equal(t, []types.UID{"former", "now"}, x.formerOwners(web, "next"))
	x.removeAbsent("former", indexedName(0, "a"), x.state())
	require.Empty(t, x.formerOwners(web, "now"), "its children are gone")
	x.removeAbsent("now", indexedName(0, "b"), x.state())
	require.Empty(t, x.formerOwners(web, "next"))
	require.Empty(t, x.marked)
}
