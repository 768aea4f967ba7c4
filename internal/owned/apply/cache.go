package apply

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/cacheselection"
	"github.com/opblocks/opblocks/internal/owned"
)

// Cache tells which objects the manager's cache holds. The zero value knows no manager.
type Cache struct{ Manager cacheselection.Manager }

// require returns an error if the manager's cache would not show an object that is about to be created. Without this error, each reconcile
// would try to create the object again, and no change of the object would trigger a reconcile.
func (c Cache) require(d *owned.Desired) error {
	if c.Manager == nil {
		return nil
	}
	selection := c.Manager.CacheSelection(d.Kind.GVK)
	selector, known := selection.SelectorOf(d.Object.GetNamespace())
	if !known || selection.Holds(d.Object) { // a namespace that the cache does not hold is not checked here: the read before this call has returned an error
		return nil
	}
	return &owned.NotCachedError{Kind: d.Kind.GVK.Kind, Name: d.Key(), Selector: selector.String()}
}

// getsIn reports whether a write brings an object into the cache: the cache's selector leaves out the object before the write, and selects
// it after the write.
func (c Cache) getsIn(d *owned.Desired, before, after client.Object) bool {
	if c.Manager == nil {
		return false
	}
	selection := c.Manager.CacheSelection(d.Kind.GVK)
	return !selection.Holds(before) && selection.Holds(after)
}
