package memory

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/writeloop"
)

// writeLoop counts our writes of the same desired object for the same fields. Many such writes mean that another controller or an admission
// plug-in changes the fields back each time.
type writeLoop struct {
	sum   owned.Sum
	paths string
	writeloop.Loop
}

func (l *writeLoop) isOf(d *owned.Desired, paths string) bool {
	return l.sum == d.Sum && l.paths == paths
}

// DelayWrite returns how long the next write of these paths has to wait because another writer undoes our writes. 0 means that it need not
// wait. begins is true only when a write is delayed for the first time.
func (m *Children) DelayWrite(d *owned.Desired, uid types.UID, paths string, now time.Time) (wait time.Duration, begins bool) {
	m.Change(uid, func(child *ChildDetails) {
		l := child.loop
		if l == nil {
			return
		}
		if !l.isOf(d, paths) || l.HasEnded(now) {
			m.DropLoop(child)
			return
		}
		wait, begins = l.Wait(now, m.metrics.Loops, d.Kind.GVK.Kind, d.Object.GetNamespace(), d.Object.GetName(), paths)
	})
	return wait, begins
}

// CountWrite counts a write of a child because the fields at these paths differed.
func (m *Children) CountWrite(d *owned.Desired, uid types.UID, paths string, now time.Time) {
	m.Change(uid, func(child *ChildDetails) {
		if child.loop == nil || !child.loop.isOf(d, paths) {
			m.DropLoop(child)
			child.loop = &writeLoop{sum: d.Sum, paths: paths}
		}
		child.loop.Count(now)
	})
}

// DropLoop ends the count of writes of a child, and removes its metric.
func (m *Children) DropLoop(child *ChildDetails) {
	if child.loop != nil {
		child.loop.End(m.metrics.Loops)
	}
	child.loop = nil
}

// Undone is a creation, deletion or recreation of a child that another writer may undo. Its value is the label path of the metric.
type Undone string

// The writes that another writer may undo.
const (
	Creating   Undone = "creation"   // we create the child, and another writer deletes it
	Deletion   Undone = "deletion"   // we delete the child, which is not desired, and another writer creates it
	Recreation Undone = "recreation" // we delete the child to create it anew, and another writer creates the old one again
)

// UndoneMessages are the formats of the messages about a delayed write. Each takes the name of the child.
var UndoneMessages = map[Undone]string{
	Creating:   "%s is deleted again and again by another writer, so it is created less often",
	Deletion:   "%s is not desired and is created again and again by another writer, so it is deleted less often",
	Recreation: "%s is replaced by the former one again and again by another writer, so it is recreated less often",
}

// NameLoops counts how often we create, delete or recreate a child while another writer undoes that. The key has the child's name, because
// a child that is created again has another UID. A creation is counted only if another writer has deleted the child before. If we create
// the child ourselves, the count of its deletions is dropped. NameLoops is safe for concurrent use.
type NameLoops struct {
	metrics *report.Metrics
	count   atomic.Int64 // the length of byName, which can be read without the lock
	mu      sync.Mutex
	byName  map[NameLoopKey]*nameLoop
	delayed map[NameLoopKey]bool // the loops that have a metric
	swept   time.Time
}

// NameLoopKey is what is counted: one kind of write of one child of an owner.
type NameLoopKey struct {
	Owner types.UID
	Child record.Name
	Write Undone
}

type nameLoop struct {
	sum     owned.Sum // the hash of the desired child
	deleted types.UID // the UID of the child that the last write has deleted
	writeloop.Loop
}

// NewNameLoops returns a memory without counts. m are the metrics that show which writes are delayed.
func NewNameLoops(m *report.Metrics) *NameLoops {
	return &NameLoops{metrics: m, byName: map[NameLoopKey]*nameLoop{}, delayed: map[NameLoopKey]bool{}}
}

// Delay returns how long a write has to wait because another writer undoes our writes. 0 means that it need not wait. begins is true only
// when a write is delayed for the first time.
func (l *NameLoops) Delay(key NameLoopKey, s owned.Sum, kind string, now time.Time) (wait time.Duration, begins bool) {
	if l.count.Load() == 0 {
		return 0, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	loop := l.byName[key]
	if loop == nil || loop.sum != s || loop.HasEnded(now) {
		return 0, false
	}
	wait, begins = loop.Wait(now, l.metrics.Loops, kind, key.Child.Namespace, key.Child.Name, string(key.Write))
	if begins {
		l.delayed[key] = true
	}
	return wait, begins
}

// Add counts a write. A creation is counted only if ChildGone was called before: most children are created only once.
func (l *NameLoops) Add(key NameLoopKey, s owned.Sum, uid types.UID, now time.Time) {
	if key.Write == Creating && l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	loop := l.byName[key]
	if key.Write == Creating {
		l.drop(NameLoopKey{key.Owner, key.Child, Deletion}) // the child did not exist, so no other writer has created it again
	}
	if loop == nil && key.Write == Creating {
		return
	}
	if loop == nil || loop.sum != s || loop.HasEnded(now) {
		l.drop(key)
		loop = &nameLoop{sum: s}
		l.put(key, loop)
	}
	if key.Write != Creating {
		loop.deleted = uid
	}
	loop.Count(now)
}

// ChildGone is called when a child is deleted. If the counts do not show that we have deleted it ourselves, ChildGone begins to count its
// creations.
func (l *NameLoops) ChildGone(owner types.UID, child record.Name, uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	for _, write := range [...]Undone{Deletion, Recreation} {
		if loop := l.byName[NameLoopKey{owner, child, write}]; loop != nil && loop.deleted == uid {
			return
		}
	}
	key := NameLoopKey{owner, child, Creating}
	if l.byName[key] == nil {
		loop := &nameLoop{}
		loop.Touch(now)
		l.put(key, loop)
	}
}

func (l *NameLoops) put(key NameLoopKey, loop *nameLoop) {
	l.byName[key] = loop
	l.count.Store(int64(len(l.byName)))
}

// sweep drops the counts of loops that have ended. It does so at most once in [writeloop.Gap]: if nothing is written for so long, a loop
// ends.
func (l *NameLoops) sweep(now time.Time) {
	if since := now.Sub(l.swept); since >= 0 && since < writeloop.Gap {
		return
	}
	l.swept = now
	for key, loop := range l.byName {
		if loop.HasEnded(now) {
			l.drop(key)
		}
	}
	if len(l.byName) == 0 {
		l.byName = map[NameLoopKey]*nameLoop{} // a Go map does not shrink when keys are deleted
	}
}

// Forget drops the counts for an owner that does not exist any more, if they have a metric. The other counts end by themselves.
func (l *NameLoops) Forget(owner types.UID) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.delayed {
		if key.Owner == owner {
			l.drop(key)
		}
	}
}

func (l *NameLoops) drop(key NameLoopKey) {
	if loop := l.byName[key]; loop != nil {
		loop.End(l.metrics.Loops)
	}
	delete(l.byName, key)
	delete(l.delayed, key)
	l.count.Store(int64(len(l.byName)))
}
