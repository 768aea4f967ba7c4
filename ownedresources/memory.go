package ownedresources

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/versions"
)

// childMemory is what an applier remembers of live children, by their UIDs. It saves comparisons and requests, and is
// empty after a restart. It is safe for concurrent use.
type childMemory struct {
	seed     maphash.Seed
	versions *versions.Epoch
	metrics  *metrics
	mu       sync.RWMutex
	byUID    map[types.UID]rememberedChild
}

// rememberedChild is what is remembered of one child. There is one for every child, so it is small.
type rememberedChild struct {
	// verified is the digest of the state in which the child was last found to be as desired, 0 if it was not.
	verified uint64
	// details are nil for a child that has only ever been found to be as desired.
	details *childDetails
}

// childDetails are what is remembered of a child that had to be written, or that is in the way.
type childDetails struct {
	// rewritten are the rewritten differences: how the answer to our last write differs from what was sent. Sending the
	// same again would change nothing, each time.
	rewritten []compare.Difference
	kind      string // the kind of the child, for the metric of these differences
	// loop is nil if the child has not been written lately.
	loop *writeLoop
	// orphanSince is when the child was first seen to belong to a former owner.
	orphanSince time.Time
}

func newChildMemory(m *metrics, v *versions.Epoch) *childMemory {
	return &childMemory{seed: maphash.MakeSeed(), versions: v, metrics: m, byUID: map[types.UID]rememberedChild{}}
}

// forget drops everything that is remembered of a child that is gone.
func (m *childMemory) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.byUID[uid].details; d != nil {
		m.count(d, -1)
		m.dropLoop(d)
	}
	delete(m.byUID, uid)
}

// change calls f with the details of a child, and drops them if f leaves them empty.
func (m *childMemory) change(uid types.UID, f func(*childDetails)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.byUID[uid]
	if record.details == nil {
		record.details = &childDetails{}
	}
	f(record.details)
	if d := record.details; d.rewritten == nil && d.loop == nil && d.orphanSince.IsZero() {
		record.details = nil
	}
	if record == (rememberedChild{}) {
		delete(m.byUID, uid)
		return
	}
	m.byUID[uid] = record
}

func (m *childMemory) detailsOf(uid types.UID) (d childDetails, found bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if details := m.byUID[uid].details; details != nil {
		return *details, true
	}
	return childDetails{}, false
}

// isVerified reports whether the live object, in this version, was already found to be what its owner desires. Then there
// is nothing to compare. Encoded is what would be sent.
func (m *childMemory) isVerified(o *owner, live client.Object, encoded []byte) bool {
	now := m.digest(o, live, encoded)
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.byUID[live.GetUID()].verified == now
}

func (m *childMemory) setVerified(o *owner, live client.Object, encoded []byte) {
	uid := live.GetUID()
	if uid == "" { // controller-runtime's fake client sets none
		return
	}
	now := m.digest(o, live, encoded)
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.byUID[uid]
	record.verified = now
	m.byUID[uid] = record
}

// digest is never 0. It is valid in this process only.
func (m *childMemory) digest(o *owner, live client.Object, encoded []byte) uint64 {
	type state struct {
		version string
		epoch   uint64
		owner   types.UID
		desired uint64
	}
	return maphash.Comparable(m.seed, state{live.GetResourceVersion(), m.versions.Current(), o.reference.UID, maphash.Bytes(m.seed, encoded)}) | 1
}

// setRewritten remembers the rewritten differences of a write, or forgets the earlier ones if there are none.
func (m *childMemory) setRewritten(kind string, uid types.UID, differences []compare.Difference) {
	if len(differences) == 0 {
		if known, found := m.detailsOf(uid); !found || known.rewritten == nil {
			return
		}
		differences = nil
	}
	m.change(uid, func(d *childDetails) {
		m.count(d, -1)
		d.kind, d.rewritten = kind, differences
		m.count(d, 1)
	})
}

func (m *childMemory) count(d *childDetails, by float64) {
	for _, difference := range d.rewritten {
		m.metrics.rewritten.WithLabelValues(d.kind, difference.Path).Add(by)
	}
}

// orphanSince returns when this child was first seen to be an orphan, which is now if it was not before.
func (m *childMemory) orphanSince(uid types.UID, now time.Time) (since time.Time) {
	m.change(uid, func(d *childDetails) {
		if d.orphanSince.IsZero() {
			d.orphanSince = now
		}
		since = d.orphanSince
	})
	return since
}

// ownerMemory is what an applier remembers of owners. It is empty after a restart, and safe for concurrent use.
type ownerMemory struct {
	seed     maphash.Seed
	versions *versions.Epoch
	mu       sync.Mutex
	byUID    map[types.UID]rememberedOwner

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
	// pruned is the digest of the desired children's names when the others were last pruned, 0 if they have to be listed
	// again. So after a restart they are listed once.
	pruned uint64
	// recreated holds, for each child, the change for which it was last deleted.
	recreated map[childName]recreatedChild
	// inputs are the values of inputs that were read from the API server. The key is the input.
	inputs map[*input]inputMemory
	// settled is what was found when there was nothing to do, nil if there may be something to do.
	settled *settledOwner
	// running is the number of reconciles that have begun and not ended. disturbed is set if an event came while one
	// ran.
	running   int32
	disturbed bool
	// listing is set while the children are listed, until one appears or is deleted.
	listing bool
}

// recreatedChild is a child that was deleted to be recreated.
type recreatedChild struct {
	sum     sum       // the hash of the desired child
	created types.UID // the UID of what was created instead; empty until then
}

type childName struct {
	kind *kind
	name types.NamespacedName
}

func newOwnerMemory(v *versions.Epoch) *ownerMemory {
	return &ownerMemory{seed: maphash.MakeSeed(), versions: v, byUID: map[types.UID]rememberedOwner{}, blocked: map[record.Name][]types.NamespacedName{},
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
	delete(m.byUID, owner)
	delete(m.orphaning, owner)
	maps.DeleteFunc(m.marked, func(_ record.Name, uid types.UID) bool { return uid == owner })
}

func (m *ownerMemory) change(owner types.UID, f func(*rememberedOwner)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.byUID[owner]
	f(&record)
	if record.pruned == 0 && len(record.recreated) == 0 && len(record.inputs) == 0 && record.settled == nil && record.running == 0 && !record.listing {
		delete(m.byUID, owner)
		return
	}
	m.byUID[owner] = record
}

// digest is the same for the same names, and never 0. It is valid in this process only.
func (m *ownerMemory) digest(desired desiredNames) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	for _, k := range desired.unbuilt {
		h.WriteString(k.gvk.Group)
		h.WriteByte(0)
		h.WriteString(k.gvk.Kind)
		h.WriteByte(1)
	}
	_, _ = h.Write(desired.retains)
	for _, d := range desired.objects {
		for _, s := range [...]string{d.kind.gvk.Group, d.kind.gvk.Kind, d.object.GetNamespace(), d.object.GetName()} {
			h.WriteString(s)
			h.WriteByte(0)
		}
	}
	return h.Sum64() | 1
}

func (m *ownerMemory) isPruned(owner types.UID, children uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byUID[owner].pruned == children
}

// beginList notes that the children of an owner are going to be listed.
func (m *ownerMemory) beginList(owner types.UID) {
	m.change(owner, func(r *rememberedOwner) { r.listing = true })
}

// endList notes that the children other than the desired ones were pruned, or with 0 that they were not. If a child has
// appeared or was deleted since beginList, they have to be listed again.
func (m *ownerMemory) endList(owner types.UID, children uint64) {
	m.change(owner, func(r *rememberedOwner) {
		if r.pruned = children; !r.listing {
			r.pruned = 0
		}
		r.listing = false
	})
}

// listAgain makes the next pass of an owner list its children.
func (m *ownerMemory) listAgain(owner types.UID) {
	m.change(owner, func(r *rememberedOwner) { r.pruned, r.listing = 0, false })
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
func (m *ownerMemory) setMarked(o *owner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marked[o.objectName()] = o.reference.UID
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

// isRecreated reports whether the live object was created, by this process, instead of one that was deleted for the same change.
func (m *ownerMemory) isRecreated(d *desired, live client.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, found := m.byUID[d.owner.reference.UID].recreated[d.name()]
	return found && last == recreatedChild{d.sum, live.GetUID()}
}

func (m *ownerMemory) setRecreated(d *desired) {
	m.change(d.owner.reference.UID, func(r *rememberedOwner) {
		if r.recreated == nil {
			r.recreated = map[childName]recreatedChild{}
		}
		r.recreated[d.name()] = recreatedChild{sum: d.sum}
	})
}

// noteCreated notes what was created instead of a child that was deleted to be recreated.
func (m *ownerMemory) noteCreated(d *desired, created types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if recreated := m.byUID[d.owner.reference.UID].recreated; recreated[d.name()].sum == d.sum {
		recreated[d.name()] = recreatedChild{d.sum, created}
	}
}

// endRecreated drops the memory of a recreation once the child has been written for another change.
func (m *ownerMemory) endRecreated(d *desired) {
	m.mu.Lock()
	last, found := m.byUID[d.owner.reference.UID].recreated[d.name()]
	m.mu.Unlock()
	if found && last.sum != d.sum {
		m.change(d.owner.reference.UID, func(r *rememberedOwner) { delete(r.recreated, d.name()) })
	}
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
