package memory

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// Recreations remembers, for each owner, which children this process has deleted in order to create them again, and for which change. It is
// empty after a restart, and safe for concurrent use.
type Recreations struct {
	mu      sync.Mutex
	ByOwner map[types.UID]map[owned.ChildName]recreatedChild
}

// recreatedChild is a child that was deleted in order to be created again.
type recreatedChild struct {
	sum     owned.Sum // the hash of the desired child at that time
	created types.UID // the UID of the new object; empty before it is created
}

// NewRecreations returns an empty memory.
func NewRecreations() *Recreations {
	return &Recreations{ByOwner: map[types.UID]map[owned.ChildName]recreatedChild{}}
}

// Forget drops what is remembered of the children of an owner that does not exist any more.
func (r *Recreations) Forget(owner types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ByOwner, owner)
}

// Has reports whether this process has created the live object in place of one that it deleted for the same change.
func (r *Recreations) Has(d *owned.Desired, live client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, found := r.ByOwner[d.Owner.Reference.UID][d.Name()]
	return found && last == recreatedChild{d.Sum, live.GetUID()}
}

// Begin notes that a child is deleted in order to be created again.
func (r *Recreations) Begin(d *owned.Desired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owner := d.Owner.Reference.UID
	if r.ByOwner[owner] == nil {
		r.ByOwner[owner] = map[owned.ChildName]recreatedChild{}
	}
	r.ByOwner[owner][d.Name()] = recreatedChild{sum: d.Sum}
}

// Created notes the UID of the object that was created in place of a deleted child.
func (r *Recreations) Created(d *owned.Desired, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if children := r.ByOwner[d.Owner.Reference.UID]; children[d.Name()].sum == d.Sum {
		children[d.Name()] = recreatedChild{d.Sum, uid}
	}
}

// End is called after a write of a child. If the desired child has changed since the child was recreated, End forgets the recreation.
func (r *Recreations) End(d *owned.Desired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	owner, name := d.Owner.Reference.UID, d.Name()
	children := r.ByOwner[owner]
	if last, found := children[name]; !found || last.sum == d.Sum {
		return
	}
	if delete(children, name); len(children) == 0 {
		delete(r.ByOwner, owner)
	}
}
