package memory

import (
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/versions"
)

// Children is what an Applier remembers of live children, by their UIDs. It saves comparisons and requests, and is
// empty after a restart. It is safe for concurrent use.
type Children struct {
	seed     maphash.Seed
	versions *versions.Epoch
	metrics  *report.Metrics
	mu       sync.RWMutex
	ByUID    map[types.UID]rememberedChild
}

// rememberedChild is what is remembered of one child. There is one for every child, so it is small.
type rememberedChild struct {
	// verified is the digest of the state in which the child was last found to be as desired. If it never was, verified is 0.
	verified uint64
	// details is nil if the child was always found to be as desired.
	details *ChildDetails
}

// ChildDetails are what is remembered of a child that had to be written, or of an orphan that has the name of a child.
type ChildDetails struct {
	// Rewritten are the rewritten differences: how the answer to our last write differs from what was sent. Sending the same again would
	// lead to the same differences.
	Rewritten []compare.Difference
	kind      string // the kind of the child, for the metric of these differences
	// loop is nil if the child has not been written lately.
	loop *writeLoop
	// orphanSince is when the child was first seen to belong to a former owner.
	orphanSince time.Time
	// Admitted are the fields that were sent with their live values, see [owned.Admitted].
	Admitted *owned.Admitted
	// refused is the last write that the API server refused as invalid. It is nil if the API server has accepted a write since.
	refused *refusedWrite
}

// refusedWrite is a write that the API server refused.
type refusedWrite struct {
	desired owned.Sum
	full    client.Object // with the fields of CreateOnly, which the hash lacks
	version string        // see authoredVersion
	at      time.Time
	err     error
}

// refusalDelay is the delay before a refused write is sent again. Package reconcile looks again after as long.
const refusalDelay = 10 * time.Minute

// NewChildren returns a memory that counts rewritten differences in the metrics.
func NewChildren(m *report.Metrics, v *versions.Epoch) *Children {
	return &Children{seed: maphash.MakeSeed(), versions: v, metrics: m, ByUID: map[types.UID]rememberedChild{}}
}

// Forget drops everything that is remembered of a child that is gone.
func (m *Children) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.ByUID[uid].details; d != nil {
		m.count(d, -1)
		m.DropLoop(d)
	}
	delete(m.ByUID, uid)
}

// Change calls f with the details of a child, and drops them if f leaves them empty.
func (m *Children) Change(uid types.UID, f func(*ChildDetails)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.ByUID[uid]
	if record.details == nil {
		record.details = &ChildDetails{}
	}
	f(record.details)
	if d := record.details; d.Rewritten == nil && d.loop == nil && d.orphanSince.IsZero() && d.Admitted == nil && d.refused == nil {
		record.details = nil
	}
	if record == (rememberedChild{}) {
		delete(m.ByUID, uid)
		return
	}
	m.ByUID[uid] = record
}

// DetailsOf returns the details of a child or of an orphan, if there are any.
func (m *Children) DetailsOf(uid types.UID) (d ChildDetails, found bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if details := m.ByUID[uid].details; details != nil {
		return *details, true
	}
	return ChildDetails{}, false
}

// IsVerified reports whether the live object, in this version, was already found to be what its owner desires. If so, there is nothing to
// compare. encoded is what would be sent, and whatever else decides whether the child is as desired, such as its binding.
func (m *Children) IsVerified(o *owned.Owner, live client.Object, encoded []byte) bool {
	now := m.digest(o, live, encoded)
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.ByUID[live.GetUID()].verified == now
}

// SetVerified remembers that the live object, in this version, is what its owner desires: see IsVerified.
func (m *Children) SetVerified(o *owned.Owner, live client.Object, encoded []byte) {
	uid := live.GetUID()
	if uid == "" { // controller-runtime's fake client sets none
		return
	}
	now := m.digest(o, live, encoded)
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.ByUID[uid]
	record.verified = now
	m.ByUID[uid] = record
}

// digest is never 0. It is valid in this process only.
func (m *Children) digest(o *owned.Owner, live client.Object, encoded []byte) uint64 {
	type state struct {
		version string
		epoch   uint64
		owner   types.UID
		desired uint64
	}
	return maphash.Comparable(m.seed, state{live.GetResourceVersion(), m.versions.Current(), o.Reference.UID, maphash.Bytes(m.seed, encoded)}) | 1
}

// SetRewritten remembers the rewritten differences of a write. If the write has none, SetRewritten forgets the earlier ones.
func (m *Children) SetRewritten(kind string, uid types.UID, differences []compare.Difference) {
	if len(differences) == 0 {
		if known, found := m.DetailsOf(uid); !found || known.Rewritten == nil {
			return
		}
		differences = nil
	}
	m.Change(uid, func(d *ChildDetails) {
		m.count(d, -1)
		d.kind, d.Rewritten = kind, differences
		m.count(d, 1)
	})
}

// SetAdmitted remembers the fields that were sent with their live values. If admitted is nil, it forgets the earlier ones.
func (m *Children) SetAdmitted(uid types.UID, admitted *owned.Admitted) {
	if known, found := m.DetailsOf(uid); admitted == nil && (!found || known.Admitted == nil) {
		return
	}
	m.Change(uid, func(d *ChildDetails) { d.Admitted = admitted })
}

// SetRefused remembers that the API server has refused to write a child.
func (m *Children) SetRefused(d *owned.Desired, live client.Object, now time.Time, err error) {
	if live.GetUID() != "" {
		m.Change(live.GetUID(), func(c *ChildDetails) { c.refused = &refusedWrite{d.Sum, d.Full, authoredVersion(live), now, err} })
	}
}

// SetAccepted forgets that the API server has refused to write a child.
func (m *Children) SetAccepted(uid types.UID) {
	if known, found := m.DetailsOf(uid); found && known.refused != nil {
		m.Change(uid, func(d *ChildDetails) { d.refused = nil })
	}
}

// Refusal returns the error with which the API server last refused the same write. It returns nil if the write can be sent: the API server
// has not refused the same write, somebody has changed the live object since, or the refusal is at least 10 minutes old.
func (m *Children) Refusal(d *owned.Desired, live client.Object, now time.Time) error {
	known, found := m.DetailsOf(live.GetUID())
	r := known.refused
	if !found || r == nil || now.Sub(r.at) >= refusalDelay {
		return nil
	}
	if r.desired != d.Sum || !equality.Semantic.DeepEqual(r.full, d.Full) || r.version != authoredVersion(live) {
		return nil
	}
	return r.err
}

// authoredVersion returns a text that changes with what authors set in a live object: the spec, labels, annotations and finalizers, but not the
// status. An object without a generation has its resource version.
func authoredVersion(live client.Object) string {
	if generation := live.GetGeneration(); generation > 0 {
		return fmt.Sprint(generation, live.GetLabels(), live.GetAnnotations(), live.GetFinalizers())
	}
	return live.GetResourceVersion()
}

func (m *Children) count(d *ChildDetails, by float64) {
	for _, difference := range d.Rewritten {
		m.metrics.Rewritten.WithLabelValues(d.kind, difference.Path).Add(by)
	}
}

// OrphanSince returns when this child was first seen to be an orphan. If it is seen as an orphan for the first time, that time is now.
func (m *Children) OrphanSince(uid types.UID, now time.Time) (since time.Time) {
	m.Change(uid, func(d *ChildDetails) {
		if d.orphanSince.IsZero() {
			d.orphanSince = now
		}
		since = d.orphanSince
	})
	return since
}
