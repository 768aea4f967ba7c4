package fakemanager

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// A freeze hides the change that it names and later ones. Earlier ones that are still pending are delivered.
func TestFreezeHidesNoEarlierChange(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	change := func(revision int64) memoryserver.Change {
		return memoryserver.Change{Revision: revision, GVK: gvk, Key: client.ObjectKey{Name: "a"}}
	}
	c := &Cache{kinds: map[schema.GroupVersionKind]*kind{gvk: {gvk: gvk, seen: 1}}}
	c.Receive(change(2))
	named := change(3)
	assert.True(t, c.FreezeForPasses(&named, 1))
	assert.False(t, c.FreezeForPasses(&named, 1), "it is frozen already")
	c.Receive(named)
	c.Receive(change(4))

	revisions := func() (all []int64) {
		for {
			_, next := c.next()
			if next == nil {
				return all
			}
			all = append(all, next.Revision)
		}
	}
	assert.Equal(t, []int64{2}, revisions(), "only the change before the one that is named")
	assert.Equal(t, 2, c.Behind(gvk))
	assert.True(t, c.Thaw())
	assert.Equal(t, []int64{3, 4}, revisions())
}
