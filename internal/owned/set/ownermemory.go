package set

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	blocked   map[record.Name][]types.NamespacedName
	orphaning map[types.UID]bool // owners that are deleted with orphan propagation
	// pruned holds the digest of the desired children's names when the others were last pruned. It is for sets without a
	// manager, which have no index.
	pruned       map[types.UID]uint64
	blockedCount atomic.Int64 // the length of blocked, which can be read without the lock
}

// rememberedOwner is what is remembered of one owner.
type rememberedOwner struct {
	// inputs are the values of inputs that were read from the API server. The key is the input.
	inputs map[*Input]inputMemory
	// settled is what was found when there was nothing to do.
	settled settledOwner
	// running is the number of reconciles that have begun and not ended. disturbed is set if an event came while one
	// ran.
	running   int32
	disturbed bool
}

func newOwnerMemory(v *versions.Epoch) *ownerMemory {
	return &ownerMemory{seed: maphash.MakeSeed(), versions: v, ByUID: map[types.UID]rememberedOwner{}, blocked: map[record.Name][]types.NamespacedName{},
		orphaning: map[types.UID]bool{}, pruned: map[types.UID]uint64{}}
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
	delete(m.pruned, owner)
}

func (m *ownerMemory) change(owner types.UID, f func(*rememberedOwner)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.ByUID[owner]
	f(&record)
	if len(record.inputs) == 0 && record.settled.versions == 0 && record.running == 0 {
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
	return m.pruned[owner] == children
}

func (m *ownerMemory) setPruned(owner types.UID, children uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned[owner] = children
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
