package set

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/versions"
)

// ownerMemory is what a set remembers of owners. It is empty after a restart, and safe for concurrent use.
type ownerMemory struct {
	seed     maphash.Seed
	versions *versions.Epoch
	mu       sync.Mutex
	ByUID    map[types.UID]rememberedOwner

	// blocked holds the owners that wait for a name which an object of somebody else has. That object's owner reference
	// leads elsewhere, so its deletion does not enqueue them. Several may wait for one name.
	blocked map[record.Name][]types.NamespacedName
	// marked holds the owners of children with marks, once these children were listed.
	marked       map[record.Name]types.UID
	orphaning    map[types.UID]bool // owners that are deleted with orphan propagation
	blockedCount atomic.Int64       // the length of blocked, which can be read without the lock
}

// rememberedOwner is what is remembered of one owner.
type rememberedOwner struct {
	// Pruned is the digest of the desired children's names when the others were last pruned, 0 if they have to be listed
	// again. So after a restart they are listed once.
	Pruned uint64
	// inputs are the values of inputs that were read from the API server. The key is the input.
	inputs map[*Input]inputMemory
	// settled is what was found when there was nothing to do, nil if there may be something to do.
	settled *settledOwner
	// running is the number of reconciles that have begun and not ended. disturbed is set if an event came while one
	// ran.
	running   int32
	disturbed bool
	// listing is set while the children are listed, until one appears or is deleted.
	listing bool
}

func newOwnerMemory(v *versions.Epoch) *ownerMemory {
	return &ownerMemory{seed: maphash.MakeSeed(), versions: v, ByUID: map[types.UID]rememberedOwner{}, blocked: map[record.Name][]types.NamespacedName{},
		marked: map[record.Name]types.UID{}, orphaning: map[types.UID]bool{}}
}

// forget drops everything that is remembered of an owner that is gone.
func (m *ownerMemory) forget(owner client.Object) {
	m.forgetUID(owner.GetUID())
	m.mu.Lock()
	defer m.mu.Unlock()
	name := client.ObjectKeyFromObject(owner)
	for blocked, owners := range m.blocked {
		if owners = slices.DeleteFunc(owners, func(waiting types.NamespacedName) bool { return waiting == name }); len(owners) == 0 {
			delete(m.blocked, blocked)
		} else {
			m.blocked[blocked] = owners
		}
	}
	m.blockedCount.Store(int64(len(m.blocked)))
}

// forgetUID drops what is remembered of the owner with this UID. Another object may have its name now.
func (m *ownerMemory) forgetUID(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ByUID, owner)
	delete(m.orphaning, owner)
	maps.DeleteFunc(m.marked, func(_ record.Name, uid types.UID) bool { return uid == owner })
}

func (m *ownerMemory) change(owner types.UID, f func(*rememberedOwner)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.ByUID[owner]
	f(&record)
	if record.Pruned == 0 && len(record.inputs) == 0 && record.settled == nil && record.running == 0 && !record.listing {
		delete(m.ByUID, owner)
		return
	}
	m.ByUID[owner] = record
}

// digest is the same for the same names, and never 0. It is valid in this process only.
func (m *ownerMemory) digest(desired DesiredNames) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	for _, k := range desired.unbuilt {
		h.WriteString(k.GVK.Group)
		h.WriteByte(0)
		h.WriteString(k.GVK.Kind)
		h.WriteByte(1)
	}
	_, _ = h.Write(desired.retains)
	for _, d := range desired.Objects {
		for _, s := range [...]string{d.Kind.GVK.Group, d.Kind.GVK.Kind, d.Object.GetNamespace(), d.Object.GetName()} {
			h.WriteString(s)
			h.WriteByte(0)
		}
	}
	return h.Sum64() | 1
}

func (m *ownerMemory) isPruned(owner types.UID, children uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ByUID[owner].Pruned == children
}

// beginList notes that the children of an owner are going to be listed.
func (m *ownerMemory) beginList(owner types.UID) {
	m.change(owner, func(r *rememberedOwner) { r.listing = true })
}

// endList notes that the children other than the desired ones were pruned, or with 0 that they were not. If a child has
// appeared or was deleted since beginList, they have to be listed again.
func (m *ownerMemory) endList(owner types.UID, children uint64) {
	m.change(owner, func(r *rememberedOwner) {
		if r.Pruned = children; !r.listing {
			r.Pruned = 0
		}
		r.listing = false
	})
}

// listAgain makes the next pass of an owner list its children.
func (m *ownerMemory) listAgain(owner types.UID) {
	m.change(owner, func(r *rememberedOwner) { r.Pruned, r.listing = 0, false })
}

// childDeleted makes the next pass of the child's owner list its children again: perhaps the owner is being deleted too.
func (m *ownerMemory) childDeleted(child client.Object) {
	if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
		m.listAgain(ref.UID)
	}
	if mark, marked := record.ParseOwner(child.GetAnnotations()[record.Owner]); marked {
		m.listAgain(mark.UID)
	}
}

// setMarked remembers that the children of an owner were listed, and the children that its former owners have left.
func (m *ownerMemory) setMarked(o *owned.Owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marked[o.ObjectName()] = o.Reference.UID
}

// childAppeared makes the next pass of an owner list its children again. It is called for a child that this process has
// not just written: a request that took effect late may have created it, after the owner changed or after another
// process became the leader. The same holds for a child that belongs to a former owner.
func (m *ownerMemory) childAppeared(child client.Object) {
	if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
		m.listAgain(ref.UID)
	}
	mark, marked := record.ParseOwner(child.GetAnnotations()[record.Owner])
	if !marked {
		return
	}
	m.mu.Lock()
	owner, known := m.marked[mark.Owner]
	m.mu.Unlock()
	if known {
		m.listAgain(owner)
	}
}

// ownerSeen remembers that an owner is deleted with orphan propagation.
func (m *ownerMemory) ownerSeen(owner client.Object) {
	if owner.GetDeletionTimestamp() == nil || !slices.Contains(owner.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orphaning[owner.GetUID()] = true
}

func (m *ownerMemory) isOrphaning(owner types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.orphaning[owner]
}

func (m *ownerMemory) setBlocked(child record.Name, owner types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !slices.Contains(m.blocked[child], owner) {
		m.blocked[child] = append(m.blocked[child], owner)
	}
	m.blockedCount.Store(int64(len(m.blocked)))
}

// takeBlocked returns the owners that wait for this object's name, and forgets them. If the name is still taken, their next
// passes find out.
func (m *ownerMemory) takeBlocked(child record.Name) []types.NamespacedName {
	if m.blockedCount.Load() == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	owners := m.blocked[child]
	delete(m.blocked, child)
	m.blockedCount.Store(int64(len(m.blocked)))
	return owners
}
