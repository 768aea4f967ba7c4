package set

import (
	"slices"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// DesiredNames are the objects that are desired in one reconcile. A kind is in unbuilt if one of its children was not built. Not all
// desired objects of such a kind are known.
type DesiredNames struct {
	Objects []owned.Declared
	unbuilt []*owned.Kind
	retains []byte // the results of the functions given to Retain, see Reconciliation.retains
}

// undesired returns a function that reports whether the object with a name is certainly not desired.
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

// NameIndexFrom is the number of objects from which a map is used to find names, and not a search in the list.
const NameIndexFrom = 16
