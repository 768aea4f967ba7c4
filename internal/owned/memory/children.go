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

// Children is what an Applier remembers of live children, by their UIDs. It saves comparisons and requests. It is empty after a restart,
// and safe for concurrent use.
type Children struct {
	seed     maphash.Seed
	versions *versions.Epoch
	metrics  *report.Metrics
	mu       sync.RWMutex
	ByUID    map[types.UID]rememberedChild
}

// rememberedChild is what is remembered of one child. Every child has one, so it is small.
type rememberedChild struct {
	// verified is a digest (see the method digest) of the version and the desired state in which the child was last found to be as desired. If
	// it never was, verified is 0.
	verified uint64
	// details is nil if the child was always found to be as desired.
	details *ChildDetails
}

// ChildDetails are what is remembered of a child that had to be written, or of an object of a former owner that has the name of a child.
type ChildDetails struct {
	// Rewritten is how the API server's answer to our last write differs from what was sent. If the same is sent again, the same differences
	// are expected.
	Rewritten []compare.Difference
	kind      string // the kind of the child, for the metric of these differences
	// loop counts our writes that another writer undoes. It is nil if the child has not been written lately.
	loop *writeLoop
	// orphanSince is when the child was first seen to belong to a former owner (a deleted owner of the same name).
	orphanSince time.Time
	// Admitted are the immutable fields that admission has set, and that were sent with their live values.
	Admitted *owned.Admitted
	// refused is the last write that the API server refused as invalid. It is nil if the API server has accepted a write since.
	refused *refusedWrite
}

// refusedWrite is a write that the API server refused as invalid.
type refusedWrite struct {
	desired owned.Sum
	full    client.Object // the object with the fields of CreateOnly, which the hash does not cover
	version string        // the result of authoredVersion for the live object
	at      time.Time
	err     error
}

// refusalDelay is the time after which a refused write is sent again. A reconciler of package reconcile reconciles again after the same
// time.
const refusalDelay = 10 * time.Minute

// NewChildren returns a memory without children. The metrics m count the differences between what was sent and what the API server stored.
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

// Change calls f, which may change the details of a child. If the details are empty afterwards, Change drops them.
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

// DetailsOf returns the details of a child, or of an object of a former owner. If there are none, found is false.
func (m *Children) DetailsOf(uid types.UID) (d ChildDetails, found bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if details := m.ByUID[uid].details; details != nil {
		return *details, true
	}
	return ChildDetails{}, false
}

// IsVerified reports whether the live object, in this version, was already found to be as desired. If so, it need not be compared again.
// encoded is the desired state: what would be sent, and how the child names its owner.
func (m *Children) IsVerified(o *owned.Owner, live client.Object, encoded []byte) bool {
	now := m.digest(o, live, encoded)
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.ByUID[live.GetUID()].verified == now
}

// SetVerified remembers that the live object, in this version, is as desired: see IsVerified.
func (m *Children) SetVerified(o *owned.Owner, live client.Object, encoded []byte) {
	uid := live.GetUID()
	if uid == "" { // an object of controller-runtime's fake client has no UID
		return
	}
	now := m.digest(o, live, encoded)
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.ByUID[uid]
	record.verified = now
	m.ByUID[uid] = record
}

// digest returns a hash of the live object's version and of the desired state. It is never 0, and valid in this process only.
func (m *Children) digest(o *owned.Owner, live client.Object, encoded []byte) uint64 {
	type state struct {
		version string
		epoch   uint64
		owner   types.UID
		desired uint64
	}
	return maphash.Comparable(m.seed, state{live.GetResourceVersion(), m.versions.Current(), o.Reference.UID, maphash.Bytes(m.seed, encoded)}) | 1
}

// SetRewritten remembers how the API server's answer to a write differs from what was sent. If it does not differ, SetRewritten forgets the
// earlier differences.
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

// SetAdmitted remembers the immutable fields that admission has set, and that were sent with their live values. If admitted is nil, it
// forgets the earlier ones.
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

// SetAccepted forgets that the API server has refused to write a child, because it has accepted a write since.
func (m *Children) SetAccepted(uid types.UID) {
	if known, found := m.DetailsOf(uid); found && known.refused != nil {
		m.Change(uid, func(d *ChildDetails) { d.refused = nil })
	}
}

// Refusal returns the error with which the API server refused this write before. It returns nil if the write has to be sent: the API server
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

// authoredVersion returns a string that changes with the spec, the labels, the annotations and the finalizers of a live object, but not
// with its status. For an object without a generation, it returns the resource version.
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

// OrphanSince returns when the object with this UID was first seen to belong to a former owner (a deleted owner of the same name). If it is
// seen so for the first time, OrphanSince remembers and returns now.
func (m *Children) OrphanSince(uid types.UID, now time.Time) (since time.Time) {
	m.Change(uid, func(d *ChildDetails) {
		if d.orphanSince.IsZero() {
			d.orphanSince = now
		}
		since = d.orphanSince
	})
	return since
}
