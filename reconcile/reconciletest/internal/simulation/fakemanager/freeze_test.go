package fakemanager

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// A freeze hides a change and all later ones. Earlier changes that are still pending are delivered.
func TestFreezeHidesNoEarlierChange(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	change := func(revision int64) memoryserver.Change {
		return memoryserver.Change{Revision: revision, GVK: gvk, Key: client.ObjectKey{Name: "a"}}
	}
	c := &WatchedKinds{kinds: map[kindKey]*kind{{gvk, typed}: {gvk: gvk, seen: 1}}}
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
	assert.Equal(t, 2, c.Behind(gvk, &corev1.ConfigMap{}))
	assert.True(t, c.Thaw())
	assert.Equal(t, []int64{3, 4}, revisions())
}

// As in a real cache, a kind has one informer for whole objects and one for metadata, and one can be behind the other.
func TestFreezeOfOneForm(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	part := &metav1.PartialObjectMetadataList{}
	c := &WatchedKinds{kinds: map[kindKey]*kind{
		{gvk, typed}: {gvk: gvk, form: typed, seen: 1, asked: true}, {gvk, metadata}: {gvk: gvk, form: metadata, seen: 1, asked: true},
	}}
	assert.True(t, c.WatchesTwice(gvk))
	deliver := func() (shown []form) {
		for {
			k, next := c.next()
			if next == nil {
				return shown
			}
			shown = append(shown, k.form)
		}
	}
	change := func(revision int64) memoryserver.Change {
		return memoryserver.Change{Revision: revision, GVK: gvk, Key: client.ObjectKey{Name: "a"}}
	}
	two, three := change(2), change(3)
	assert.True(t, c.FreezeWhole(&two))
	assert.False(t, c.FreezeMetadata(&two), "the kind is frozen in another form")
	c.Receive(two)
	assert.Equal(t, []form{metadata}, deliver())
	assert.Equal(t, 1, c.Behind(gvk, &corev1.ConfigMapList{}))
	assert.Zero(t, c.Behind(gvk, part))
	assert.True(t, c.Thaw())
	assert.Equal(t, []form{typed}, deliver())

	assert.True(t, c.FreezeMetadata(&three))
	c.Receive(three)
	assert.Equal(t, []form{typed}, deliver())
	assert.Equal(t, 1, c.Behind(gvk, part))
	begun := c.watchFrom(gvk, untyped, 3)
	assert.Equal(t, int64(3), begun.seen, "another form begins like the first one")
	assert.True(t, c.Thaw())
	assert.Equal(t, []form{metadata}, deliver())
}
