package childindex

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/record"
)

func indexedName(kind int32, name string) Name {
	return Name{kind, types.NamespacedName{Namespace: "ns", Name: name}}
}

func TestChildIndex(t *testing.T) {
	for _, n := range []int{1, 3, longList, longList + 1, 3 * longList} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			x := New()
			for range 2 { // the cache shows each object more than once
				for i := range n {
					x.Add("o", indexedName(int32(i%2), fmt.Sprint(i)), nil)
				}
			}
			x.Add("other", indexedName(0, "0"), nil)
			before := x.ChildrenOf("o")
			require.Len(t, before, n)
			read := append([]Name(nil), before...)

			for i := range n {
				x.RemoveAbsent("o", indexedName(0, "unknown"), nil, x.State("o"))
				require.Contains(t, x.ChildrenOf("o"), indexedName(int32(i%2), fmt.Sprint(i)))
				x.RemoveAbsent("o", indexedName(int32(i%2), fmt.Sprint(i)), nil, x.State("o"))
				require.Len(t, x.ChildrenOf("o"), n-i-1)
				require.NotContains(t, x.ChildrenOf("o"), indexedName(int32(i%2), fmt.Sprint(i)))
				x.Add("o", indexedName(5, "again"), nil)
				x.RemoveAbsent("o", indexedName(5, "again"), nil, x.State("o"))
			}
			require.Equal(t, read, before, "a reader keeps what it has read")
			require.Len(t, x.byOwner, 1, "an owner without children is forgotten")
			require.Len(t, x.ChildrenOf("other"), 1)
		})
	}
}

// The cache may begin to show an object right after a reader has not found it.
func TestRemoveAbsentAfterItAppeared(t *testing.T) {
	x := New()
	x.Add("o", indexedName(0, "a"), nil)
	before := x.State("o")
	x.Add("o", indexedName(0, "a"), nil)
	require.False(t, x.RemoveAbsent("o", indexedName(0, "a"), nil, before))
	require.Len(t, x.ChildrenOf("o"), 1)
}

func TestRemoveKind(t *testing.T) {
	x := New()
	for i := range 3 * longList {
		x.Add("both", indexedName(int32(i%2), fmt.Sprint(i)), nil)
	}
	x.Add("one", indexedName(1, "a"), nil)
	x.RemoveKind(1)
	require.Len(t, x.ChildrenOf("both"), 3*longList/2)
	require.NotContains(t, x.byOwner, types.UID("one"))
	x.RemoveAbsent("both", indexedName(0, "0"), nil, x.State("both"))
	require.Len(t, x.ChildrenOf("both"), 3*longList/2-1)
}

func TestFormerOwners(t *testing.T) {
	x := New()
	web := record.Name{Kind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}
	x.Add("former", indexedName(0, "a"), &record.Mark{Owner: web, UID: "former"})
	x.Add("now", indexedName(0, "b"), &record.Mark{Owner: web, UID: "now"})
	require.Equal(t, []types.UID{"former"}, x.FormerOwners(web, "now"))
	require.Equal(t, []types.UID{"former", "now"}, x.FormerOwners(web, "next"))
	x.RemoveAbsent("former", indexedName(0, "a"), nil, x.State("former"))
	require.Empty(t, x.FormerOwners(web, "now"), "its children are gone")
	x.RemoveAbsent("now", indexedName(0, "b"), nil, x.State("now"))
	require.Empty(t, x.FormerOwners(web, "next"))
	require.Empty(t, x.marked)
}

// When an owner is gone, nobody looks up its children any more. So nothing must stay in memory.
func TestNothingStaysOfAnOwnerThatIsGone(t *testing.T) {
	web := record.Name{Kind: schema.GroupKind{Group: "example.com", Kind: "Shop"}, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "web"}}
	mark := &record.Mark{Owner: web, UID: "o"}
	x := New()
	x.Add("o", indexedName(0, "a"), mark)
	before := x.State("o")
	x.Add("other", indexedName(0, "b"), nil)
	require.True(t, x.RemoveAbsent("o", indexedName(0, "a"), mark, before), "the child of another owner does not matter")
	require.Empty(t, x.marked)
	require.NotContains(t, x.byOwner, types.UID("o"))

	x.Add("o", indexedName(0, "a"), mark)
	require.False(t, x.RemoveAbsent("o", indexedName(0, "a"), mark, before), "it was added again")
	x.RemoveKind(0)
	require.Empty(t, x.marked)
	require.Empty(t, x.byOwner)
}
