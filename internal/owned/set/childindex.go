package set

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/record"
)

// childIndex holds the names of the objects that a set has written, by their owners. It has every object that the cache shows, and
// for a moment perhaps names of others. Without a manager it is empty. It is safe for concurrent use.
//
// The cache calls [WatchedKind.Index] with each version of an object, before any event handler and before a reader sees it: so a
// name is added. It is removed by the event of the object's deletion, or when a reader does not find the object. An index in the
// cache would need maps for each owner, which take nearly a kilobyte.
type childIndex struct {
	mu      sync.RWMutex
	byOwner map[types.UID]childNames
	added   uint64 // the number of calls of add
	// marked holds the owners that the marks of children name. There are several of one name if former owners have left
	// children. An owner without children stays until it is looked up.
	marked map[record.Name][]types.UID
}

// childName is the name of an object.
type childName struct {
	kind int32 // the index of the first child of the set with the object's kind
	types.NamespacedName
}

// childNames are the names of the children of one owner. A list that was returned is never changed.
type childNames struct {
	list   []childName
	places map[childName]int // the places in the list; nil while it is short
}

// longList is the number of children from which a map, instead of a search, finds one.
const longList = 32

func newChildIndex() *childIndex {
	return &childIndex{byOwner: map[types.UID]childNames{}, marked: map[record.Name][]types.UID{}}
}

// childrenOf returns the names of the children of an owner.
func (x *childIndex) childrenOf(owner types.UID) []childName {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byOwner[owner].list
}

// state returns a number that changes with each call of add.
func (x *childIndex) state() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.added
}

// removeAbsent removes a name whose object the cache did not show. It does nothing if an object was added since the state before
// that read: perhaps it is this one.
func (x *childIndex) removeAbsent(owner types.UID, child childName, before uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.added != before {
		return
	}
	names := x.byOwner[owner]
	at := names.place(child)
	if at < 0 {
		return
	}
	list := slices.Clone(names.list) // a reader may have the present one
	last := len(list) - 1
	list[at] = list[last]
	if names.list = list[:last:last]; last == 0 {
		delete(x.byOwner, owner)
		return
	}
	if names.places != nil {
		names.places[list[at]] = at
		delete(names.places, child)
	}
	x.byOwner[owner] = names
}

// formerOwners returns the UIDs of other owners of this name that have left children.
func (x *childIndex) formerOwners(name record.Name, owner types.UID) (former []types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.marked[name]) == 0 {
		return nil
	}
	uids := slices.DeleteFunc(x.marked[name], func(uid types.UID) bool { return len(x.byOwner[uid].list) == 0 })
	if x.marked[name] = uids; len(uids) == 0 {
		delete(x.marked, name)
	}
	for _, uid := range uids {
		if uid != owner {
			former = append(former, uid)
		}
	}
	return former
}

// add adds an object. mark is nil for one with an owner reference.
func (x *childIndex) add(owner types.UID, child childName, mark *record.Mark) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.added++
	if mark != nil && !slices.Contains(x.marked[mark.Owner], owner) {
		x.marked[mark.Owner] = append(x.marked[mark.Owner], owner)
	}
	names := x.byOwner[owner]
	if names.place(child) >= 0 {
		return
	}
	names.list = append(names.list, child)
	switch {
	case names.places != nil:
		names.places[child] = len(names.list) - 1
	case len(names.list) > longList:
		names.findPlaces()
	}
	x.byOwner[owner] = names
}

// removeKind removes all objects of a kind that is no longer served.
func (x *childIndex) removeKind(kind int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner, names := range x.byOwner {
		list := slices.DeleteFunc(slices.Clone(names.list), func(child childName) bool { return child.kind == kind })
		if len(list) == 0 {
			delete(x.byOwner, owner)
			continue
		}
		names = childNames{list: list}
		if len(list) > longList {
			names.findPlaces()
		}
		x.byOwner[owner] = names
	}
}

func (n *childNames) place(child childName) int {
	if n.places == nil {
		return slices.Index(n.list, child)
	}
	if at, found := n.places[child]; found {
		return at
	}
	return -1
}

func (n *childNames) findPlaces() {
	n.places = make(map[childName]int, len(n.list))
	for i, child := range n.list {
		n.places[child] = i
	}
}
