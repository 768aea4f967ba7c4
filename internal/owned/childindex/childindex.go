// Package childindex keeps, for each owner, the names of the objects that a set of children has written. So they are found without listing
// a kind.
package childindex

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/record"
)

// Index has the names of the objects that a set has written, by the UIDs of their owners. It has the name of every such object that the
// cache shows. For a moment it may also have the name of an object that is gone or has another owner. Without a manager it is empty. It is
// safe for concurrent use.
//
// Add is called by a function that is registered with IndexField. The cache calls this function with each version of an object, before any
// event handler, and before a reader sees the object. A name is removed after the event of the object's deletion, or when a reader does not
// find the object. An index in the cache itself would need nearly a kilobyte of maps for each owner.
type Index struct {
	mu      sync.RWMutex
	byOwner map[types.UID]names
	adds    uint64 // the number of calls of Add
	// marked is for children that have a mark (annotations that name their owner) and no owner reference. For the name of each owner it has
	// the UIDs of the owners of such children. If deleted owners of this name have left children, there are several UIDs. A UID without
	// children may stay until the name is looked up.
	marked map[record.Name][]types.UID
}

// Name is the kind and the name of an object.
type Name struct {
	Kind int32 // the index of the first child of the set that has this kind
	types.NamespacedName
}

// names are the names of the children of one owner. A list that was returned to a reader is never changed afterwards.
type names struct {
	added  uint64 // the number of the last call of Add for this owner
	list   []Name
	places map[Name]int // the index of each name in the list; nil while the list is short
}

// longList is the length of the longest list that is searched item by item. A longer list has a map.
const longList = 32

// New returns an index without objects.
func New() *Index {
	return &Index{byOwner: map[types.UID]names{}, marked: map[record.Name][]types.UID{}}
}

// ChildrenOf returns the names of the children of an owner.
func (x *Index) ChildrenOf(owner types.UID) []Name {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byOwner[owner].list
}

// State returns a number that changes with each call of Add for an owner.
func (x *Index) State(owner types.UID) uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.byOwner[owner].added
}

// RemoveAbsent removes the name of an object that the cache did not show. mark is the mark of the object (annotations that name its owner),
// or nil. before is the result of [Index.State] before the cache was read. If a child of the owner was added since, RemoveAbsent removes
// nothing and returns false: that child may be this object.
func (x *Index) RemoveAbsent(owner types.UID, child Name, mark *record.Mark, before uint64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	found := x.byOwner[owner]
	if found.added != before {
		return false
	}
	at := found.place(child)
	if at < 0 {
		return true
	}
	list := slices.Clone(found.list) // a reader may still use the present list
	last := len(list) - 1
	list[at] = list[last]
	if found.list = list[:last:last]; last == 0 {
		delete(x.byOwner, owner)
		if mark != nil {
			x.sweep(mark.Owner)
		}
		return true
	}
	if found.places != nil {
		found.places[list[at]] = at
		delete(found.places, child)
	}
	x.byOwner[owner] = found
	return true
}

// sweep forgets the UIDs of owners of this name that have no children.
func (x *Index) sweep(name record.Name) {
	x.marked[name] = slices.DeleteFunc(x.marked[name], func(uid types.UID) bool { return len(x.byOwner[uid].list) == 0 })
	if len(x.marked[name]) == 0 {
		delete(x.marked, name)
	}
}

// FormerOwners returns the UIDs of other owners of this name that have left children. Such an owner is usually deleted.
func (x *Index) FormerOwners(name record.Name, owner types.UID) (former []types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.marked[name]) == 0 {
		return nil
	}
	x.sweep(name)
	for _, uid := range x.marked[name] {
		if uid != owner {
			former = append(former, uid)
		}
	}
	return former
}

// Add adds an object. mark is the mark of the object (annotations that name its owner), or nil if the object has an owner reference.
func (x *Index) Add(owner types.UID, child Name, mark *record.Mark) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.adds++
	if mark != nil && !slices.Contains(x.marked[mark.Owner], owner) {
		x.marked[mark.Owner] = append(x.marked[mark.Owner], owner)
	}
	found := x.byOwner[owner]
	found.added = x.adds
	if found.place(child) >= 0 {
		x.byOwner[owner] = found
		return
	}
	found.list = append(found.list, child)
	switch {
	case found.places != nil:
		found.places[child] = len(found.list) - 1
	case len(found.list) > longList:
		found.findPlaces()
	}
	x.byOwner[owner] = found
}

// RemoveKind removes the names of all objects of a kind that the API server does not serve any more.
func (x *Index) RemoveKind(kind int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner, found := range x.byOwner {
		list := slices.DeleteFunc(slices.Clone(found.list), func(child Name) bool { return child.Kind == kind })
		if len(list) == 0 {
			delete(x.byOwner, owner)
			continue
		}
		found = names{added: found.added, list: list}
		if len(list) > longList {
			found.findPlaces()
		}
		x.byOwner[owner] = found
	}
	for name := range x.marked {
		x.sweep(name)
	}
}

func (n *names) place(child Name) int {
	if n.places == nil {
		return slices.Index(n.list, child)
	}
	if at, found := n.places[child]; found {
		return at
	}
	return -1
}

func (n *names) findPlaces() {
	n.places = make(map[Name]int, len(n.list))
	for i, child := range n.list {
		n.places[child] = i
	}
}
