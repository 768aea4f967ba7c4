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

// writeLoop counts writes of the same desired object for the same fields: another controller or an admission plug-in
// changes them back each time.
type writeLoop struct {
	sum   owned.Sum
	paths string
	writeloop.Loop
}

func (l *writeLoop) isOf(d *owned.Desired, paths string) bool {
	return l.sum == d.Sum && l.paths == paths
}

// DelayWrite returns how long the next write has to wait. 0 means that it need not wait. begins is true once in a loop: when the first
// delay begins.
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

// CountWrite counts a write of these paths.
func (m *Children) CountWrite(d *owned.Desired, uid types.UID, paths string, now time.Time) {
	m.Change(uid, func(child *ChildDetails) {
		if child.loop == nil || !child.loop.isOf(d, paths) {
			m.DropLoop(child)
			child.loop = &writeLoop{sum: d.Sum, paths: paths}
		}
		child.loop.Count(now)
	})
}

// DropLoop ends a loop, if there is one, and removes its metric.
func (m *Children) DropLoop(child *ChildDetails) {
	if child.loop != nil {
		child.loop.End(m.metrics.Loops)
	}
	child.loop = nil
}

// Undone is a creation, deletion or recreation of a child, which another writer may undo. Its value is the path in the metric.
type Undone string

// The writes that another writer may undo.
const (
	Creating   Undone = "creation"   // another writer deletes the child
	Deletion   Undone = "deletion"   // another writer creates the child, which is not desired
	Recreation Undone = "recreation" // another writer puts the old child back
)

// UndoneMessages are the messages of a delayed write. Each has a verb for the child.
var UndoneMessages = map[Undone]string{
	Creating:   "%s is deleted again and again by another writer, so it is created less often",
	Deletion:   "%s is not desired and is created again and again by another writer, so it is deleted less often",
	Recreation: "%s is replaced by the former one again and again by another writer, so it is recreated less often",
}

// NameLoops counts how often we create, delete or recreate a child while another writer undoes that. The key is the child's name, because a
// child that is created again has another UID. A creation is counted only if another writer has deleted the child before. Our own creation
// drops the count of deletions. NameLoops is safe for concurrent use.
type NameLoops struct {
	metrics *report.Metrics
	count   atomic.Int64 // the length of byName, which can be read without the lock
	mu      sync.Mutex
	byName  map[NameLoopKey]*nameLoop
	delayed map[NameLoopKey]bool // the loops with a metric
	swept   time.Time
}

// NameLoopKey identifies a loop: the child of an owner, and the write.
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

// NewNameLoops returns a memory without loops. The metrics m show the loops whose writes are delayed.
func NewNameLoops(m *report.Metrics) *NameLoops {
	return &NameLoops{metrics: m, byName: map[NameLoopKey]*nameLoop{}, delayed: map[NameLoopKey]bool{}}
}

// Delay returns how long a write has to wait. 0 means that it need not wait. begins is true once in a loop: when the first delay begins.
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

// Add counts a write. A creation is counted only if ChildGone has been called: most children are created once.
func (l *NameLoops) Add(key NameLoopKey, s owned.Sum, uid types.UID, now time.Time) {
	if key.Write == Creating && l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	loop := l.byName[key]
	if key.Write == Creating {
		l.drop(NameLoopKey{key.Owner, key.Child, Deletion}) // we create the child ourselves, so no other writer has created it
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

// ChildGone begins to count how often a child is created. If the loops show that we have deleted the child ourselves, it does nothing.
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

// sweep drops the loops that have ended. It does so at most once in [writeloop.Gap], the time without a write after which a loop ends.
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
		l.byName = map[NameLoopKey]*nameLoop{} // a map keeps the memory of what it has held
	}
}

// Forget drops the loops of an owner that is gone, if they have a metric. The other loops of the owner end by themselves.
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
