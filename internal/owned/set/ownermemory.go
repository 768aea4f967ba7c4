package set

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/versions"
)

// ownerMemory is what a set remembers of owners. It is empty after a restart, and safe for concurrent use.
type ownerMemory struct {
	seed     maphash.Seed
	versions *versions.Epoch
	mu       sync.Mutex
	ByUID    map[types.UID]rememberedOwner

	// blocked has the owners that cannot have a child because an object of somebody else has the child's name. That object has no owner
	// reference to these owners, so its deletion alone would not enqueue them. Several owners may wait for one name.
	blocked   map[record.Name][]types.NamespacedName
	orphaning map[types.UID]bool // owners that are deleted with orphan propagation
	// pruned has a hash of the names that were desired when the children of the owner were last pruned. Only sets without a manager use it:
	// they have no index of children.
	pruned       map[types.UID]uint64
	blockedCount atomic.Int64 // the length of blocked; it can be read without the lock
}

// rememberedOwner is what a set remembers about one owner.
type rememberedOwner struct {
	// inputs has the last value of each input that sent requests to the API server when it was read. A value that was read only from the
	// cache is not remembered: each reconcile reads it again.
	inputs map[*Input]inputMemory
	// settled describes the last reconcile, if that reconcile found nothing to do. Otherwise it is the zero value.
	settled settledOwner
	// running is the number of reconciles of the owner that have begun and not ended. disturbed is set if an event came during one of them.
	running   int32
	disturbed bool
}

func newOwnerMemory(v *versions.Epoch) *ownerMemory {
	return &ownerMemory{seed: maphash.MakeSeed(), versions: v, ByUID: map[types.UID]rememberedOwner{}, blocked: map[record.Name][]types.NamespacedName{},
		orphaning: map[types.UID]bool{}, pruned: map[types.UID]uint64{}}
}

// forget drops everything that is remembered of an owner that does not exist any more.
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

// forgetUID drops what is remembered of the owner with this UID. Another owner may have the same name now.
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

// digest returns a hash of the desired names. It is never 0, and valid in this process only.
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

// ownerSeen records the owner if it is being deleted with orphan propagation.
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

// takeBlocked returns the owners that wait for the name of this child, and forgets them. If the name is still taken, the next reconcile of
// each owner records it again.
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

// settledOwner describes a reconcile of an owner that found nothing to do. There may be one for every owner, so it is small.
type settledOwner struct {
	versions uint64 // a hash of the versions of the owner and its children; 0 if there may be something to do
	epoch    uint64 // the number of versions.Epoch at that time; it changes when resource versions have gone back
	more     *settledMore
}

// settledMore has the parts of a settledOwner that only some sets need. It is nil for the others.
type settledMore struct {
	children []childindex.Name   // the children, in a set without a manager, which has no index of children
	reads    []owned.ReadVersion // the versions of the objects that the inputs have read
	ofReads  uint64              // the number of versions.Epoch for the versions in reads
	served   []servedState       // by child, in a set with the option IfServed: whether its kind was served
}

// settledChild is the version of a live child that was as desired and ready.
type settledChild struct {
	childindex.Name
	uid     types.UID
	version string
}

// settledVersions computes a hash of the versions of an owner and its children, which may be added in any order. It is valid in this
// process only.
type settledVersions struct {
	seed maphash.Seed
	sum  uint64
}

func (m *ownerMemory) versionsOf(owner client.Object) settledVersions {
	return settledVersions{m.seed, maphash.String(m.seed, owner.GetResourceVersion())}
}

func (v *settledVersions) add(child settledChild) { v.sum += maphash.Comparable(v.seed, child) }

// digest returns the hash. It is never 0.
func (v *settledVersions) digest() uint64 { return max(v.sum, 1) }

// settledOf returns what is remembered of the last reconcile of an owner that found nothing to do. If there may be something to do, or if
// resource versions have gone back since, it returns the zero value.
func (m *ownerMemory) settledOf(owner types.UID) settledOwner {
	m.mu.Lock()
	defer m.mu.Unlock()
	settled := m.ByUID[owner].settled
	if settled.epoch != m.versions.Current() {
		return settledOwner{}
	}
	return settled
}

// begin records that a reconcile of the owner begins. From then on, observe records events that come before the end of the reconcile. If
// two reconcilers share the set, two reconciles of an owner may run at once. begin returns the number that versions.Epoch has at the
// begin of the reconcile.
func (m *ownerMemory) begin(owner types.UID) (epoch uint64) {
	m.change(owner, func(r *rememberedOwner) {
		r.disturbed = r.disturbed && r.running > 0
		r.running++
	})
	return m.versions.Current()
}

// end records that a reconcile of the owner has ended. epoch is the result of begin. If the reconcile found nothing to do, found describes
// it. Otherwise found is the zero value. If an event came during the reconcile, or the owner was deleted, found is not kept.
func (m *ownerMemory) end(owner types.UID, epoch uint64, found settledOwner) {
	m.change(owner, func(r *rememberedOwner) {
		forgotten := r.running == 0 // the owner was deleted during the reconcile
		if !forgotten {
			r.running--
		}
		r.settled = settledOwner{}
		if !r.disturbed && !forgotten && found.versions != 0 {
			r.settled = found
			r.settled.epoch = epoch
		}
	})
}

// observe is called for an event of an owner, or of an object that the owner controls: there may be something to do again. It reports
// whether the last reconcile had found nothing to do.
func (m *ownerMemory) observe(owner types.UID) (forgot bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, found := m.ByUID[owner]
	if !found { // the UID may belong to an owner of another kind
		return false
	}
	forgot = record.settled.versions != 0
	record.settled, record.disturbed = settledOwner{}, record.running > 0
	m.ByUID[owner] = record
	return forgot
}

// inputMemory is the remembered value of an input for one owner.
type inputMemory struct {
	owner uint64 // the result of digestOwner when the value was read
	reads []owned.ReadVersion
	value any
}

// digestOwner returns a hash of the parts of an owner that an input may read: its spec, labels and annotations. The generation stands for
// the spec. If the kind has no generation, the resource version stands for it. The hash also covers the numbers of versions.Epoch, which
// change when resource versions have gone back.
func (m *ownerMemory) digestOwner(owner client.Object, ofReads uint64) uint64 {
	var h maphash.Hash
	h.SetSeed(m.seed)
	maphash.WriteComparable(&h, [2]uint64{m.versions.Current(), ofReads})
	if generation := owner.GetGeneration(); generation != 0 {
		maphash.WriteComparable(&h, generation)
	} else {
		h.WriteString(owner.GetResourceVersion())
	}
	var pairs uint64 // a sum does not depend on the order of the map
	for i, pairsOf := range []map[string]string{owner.GetLabels(), owner.GetAnnotations()} {
		for key, value := range pairsOf {
			pairs += maphash.Comparable(m.seed, [2]string{key, value}) * uint64(2*i+1)
		}
	}
	maphash.WriteComparable(&h, pairs)
	return h.Sum64()
}

func (m *ownerMemory) input(owner types.UID, input *Input) (inputMemory, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.ByUID[owner].inputs[input]
	return known, ok
}

func (m *ownerMemory) setInput(owner types.UID, in *Input, read inputMemory) {
	m.change(owner, func(r *rememberedOwner) {
		if r.inputs == nil {
			r.inputs = map[*Input]inputMemory{}
		}
		r.inputs[in] = read
	})
}
