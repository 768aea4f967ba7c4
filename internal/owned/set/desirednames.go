package set

import (
	"slices"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// DesiredNames are the objects that are desired in one reconcile. Not all desired objects of the kinds in unbuilt are
// known: a child of such a kind was not built.
type DesiredNames struct {
	Objects []owned.Declared
	unbuilt []*owned.Kind
	retains []byte // see Reconciliation.retains
}

// undesired returns a function that reports whether an object of a name is certainly not desired.
func (d DesiredNames) undesired() func(record.Name) bool {
	isDesired := func(name record.Name) bool {
		return slices.ContainsFunc(d.Objects, func(o owned.Declared) bool { return o.ObjectName() == name })
	}
	if len(d.Objects) >= NameIndexFrom {
		names := make(map[record.Name]bool, len(d.Objects))
		for i := range d.Objects {
			names[d.Objects[i].ObjectName()] = true
		}
		isDesired = func(name record.Name) bool { return names[name] }
	}
	return func(name record.Name) bool {
		return !isDesired(name) && !slices.ContainsFunc(d.unbuilt, func(k *owned.Kind) bool { return k.GVK.GroupKind() == name.Kind })
	}
}

// without returns the objects in found that are certainly not desired.
func (d DesiredNames) without(found []written) (rest []written) {
	if len(found) == 0 {
		return nil
	}
	undesired := d.undesired()
	for _, w := range found {
		if undesired(record.NameOf(w.kind.GVK.GroupKind(), w.object)) {
			rest = append(rest, w)
		}
	}
	return rest
}

// NameIndexFrom is the number of objects from which on names are found in a map, instead of by a search.
const NameIndexFrom = 16
