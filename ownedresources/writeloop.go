package ownedresources

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/eventnote"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/writeloop"
)

const reasonWriteLoop = writeloop.Reason

// writeLoop counts writes of the same desired object for the same fields: another controller or an admission plug-in
// changes them back each time.
type writeLoop struct {
	sum   sum
	paths string
	writeloop.Loop
}

func (l *writeLoop) isOf(d *desired, paths string) bool { return l.sum == d.sum && l.paths == paths }

// slowDown returns a [WaitingError] while the next write of the object has to wait, and nil if it may be sent now.
func (a *applier) slowDown(d *desired, live client.Object, paths string) error {
	wait, begins := a.children.delayWrite(d, live.GetUID(), paths, a.clock.Now())
	if wait == 0 {
		return nil
	}
	message := fmt.Sprintf("%s is changed back again and again by another writer, so it is applied less often: %s", d, paths)
	return a.delayed(d.owner, live, message, wait, begins)
}

// delayed returns the error for a write that is delayed. It emits an event if the delays begin.
func (a *applier) delayed(o *owner, live client.Object, message string, wait time.Duration, begins bool) error {
	if begins && a.recorder != nil {
		a.recorder.Eventf(o.object, live, corev1.EventTypeWarning, reasonWriteLoop, o.action(), "%s", eventnote.Cut(message))
	}
	return &WaitingError{reason: reasonWriteLoop, message: message, after: wait}
}

// delayWrite returns how long the next write has to wait, 0 if not at all. It reports once per loop that the delays begin.
func (m *childMemory) delayWrite(d *desired, uid types.UID, paths string, now time.Time) (wait time.Duration, begins bool) {
	m.change(uid, func(child *childDetails) {
		l := child.loop
		if l == nil {
			return
		}
		if !l.isOf(d, paths) || l.HasEnded(now) {
			m.dropLoop(child)
			return
		}
		wait, begins = l.Wait(now, m.metrics.loops, d.kind.gvk.Kind, d.object.GetNamespace(), d.object.GetName(), paths)
	})
	return wait, begins
}

// countWrite counts a write of these paths.
func (m *childMemory) countWrite(d *desired, uid types.UID, paths string, now time.Time) {
	m.change(uid, func(child *childDetails) {
		if child.loop == nil || !child.loop.isOf(d, paths) {
			m.dropLoop(child)
			child.loop = &writeLoop{sum: d.sum, paths: paths}
		}
		child.loop.Count(now)
	})
}

// dropLoop ends a loop, if there is one, and removes its metric.
func (m *childMemory) dropLoop(child *childDetails) {
	if child.loop != nil {
		child.loop.End(m.metrics.loops)
	}
	child.loop = nil
}

// undone is a write that gives a child another UID, and that another writer may undo. Its value is the path in the metric.
type undone string

const (
	creating   undone = "creation"   // another writer deletes the child
	deletion   undone = "deletion"   // another writer creates the child, which is not desired
	recreation undone = "recreation" // another writer puts the old child back
)

var undoneMessages = map[undone]string{
	creating:   "%s is deleted again and again by another writer, so it is created less often",
	deletion:   "%s is not desired and is created again and again by another writer, so it is deleted less often",
	recreation: "%s is replaced by the former one again and again by another writer, so it is recreated less often",
}

// nameLoops are the loops of writes that give a child another UID. They are counted by the child's name. Only a write that
// follows what another writer did is counted. It is safe for concurrent use.
type nameLoops struct {
	metrics *metrics
	count   atomic.Int64 // the length of byName, which can be read without the lock
	mu      sync.Mutex
	byName  map[nameLoopKey]*nameLoop
	delayed map[nameLoopKey]bool // the loops with a metric
	swept   time.Time
}

type nameLoopKey struct {
	owner types.UID
	child record.Name
	write undone
}

type nameLoop struct {
	sum     sum       // the hash of the desired child
	deleted types.UID // the UID of the child that the last write has deleted
	writeloop.Loop
}

func newNameLoops(m *metrics) *nameLoops {
	return &nameLoops{metrics: m, byName: map[nameLoopKey]*nameLoop{}, delayed: map[nameLoopKey]bool{}}
}

// slowDownByName is slowDown for a write that gives the child another UID. The sum is zero for a child that is not desired.
func (a *applier) slowDownByName(o *owner, k *kind, obj client.Object, write undone, s sum) error {
	wait, begins := a.loops.delay(nameLoopKey{o.reference.UID, record.NameOf(k.gvk.GroupKind(), obj), write}, s, k.gvk.Kind, a.clock.Now())
	if wait == 0 {
		return nil
	}
	return a.delayed(o, nil, fmt.Sprintf(undoneMessages[write], k.describe(obj)), wait, begins)
}

// countByName counts a write that gives the child another UID.
func (a *applier) countByName(o *owner, k *kind, obj client.Object, write undone, s sum) {
	a.loops.add(nameLoopKey{o.reference.UID, record.NameOf(k.gvk.GroupKind(), obj), write}, s, obj.GetUID(), a.clock.Now())
}

func (l *nameLoops) delay(key nameLoopKey, s sum, kind string, now time.Time) (wait time.Duration, begins bool) {
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
	wait, begins = loop.Wait(now, l.metrics.loops, kind, key.child.Namespace, key.child.Name, string(key.write))
	if begins {
		l.delayed[key] = true
	}
	return wait, begins
}

// add counts a write. A creation is counted only if childGone has been called: most children are created once.
func (l *nameLoops) add(key nameLoopKey, s sum, uid types.UID, now time.Time) {
	if key.write == creating && l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	loop := l.byName[key]
	if key.write == creating {
		l.drop(nameLoopKey{key.owner, key.child, deletion}) // it was not another writer who has created the child
	}
	if loop == nil && key.write == creating {
		return
	}
	if loop == nil || loop.sum != s || loop.HasEnded(now) {
		l.drop(key)
		loop = &nameLoop{sum: s}
		l.put(key, loop)
	}
	if key.write != creating {
		loop.deleted = uid
	}
	loop.Count(now)
}

// childGone begins to count how often a child is created, unless the loops show that we have deleted it ourselves.
func (l *nameLoops) childGone(owner types.UID, child record.Name, uid types.UID, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	for _, write := range [...]undone{deletion, recreation} {
		if loop := l.byName[nameLoopKey{owner, child, write}]; loop != nil && loop.deleted == uid {
			return
		}
	}
	key := nameLoopKey{owner, child, creating}
	if l.byName[key] == nil {
		loop := &nameLoop{}
		loop.Touch(now)
		l.put(key, loop)
	}
}

func (l *nameLoops) put(key nameLoopKey, loop *nameLoop) {
	l.byName[key] = loop
	l.count.Store(int64(len(l.byName)))
}

// sweep drops the loops that have ended. It does so at most once in the time after which a loop ends.
func (l *nameLoops) sweep(now time.Time) {
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
		l.byName = map[nameLoopKey]*nameLoop{} // a map keeps the memory of what it has held
	}
}

// forget drops the loops with a metric of an owner that is gone. The others end by themselves.
func (l *nameLoops) forget(owner types.UID) {
	if l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.delayed {
		if key.owner == owner {
			l.drop(key)
		}
	}
}

func (l *nameLoops) drop(key nameLoopKey) {
	if loop := l.byName[key]; loop != nil {
		loop.End(l.metrics.loops)
	}
	delete(l.byName, key)
	delete(l.delayed, key)
	l.count.Store(int64(len(l.byName)))
}

// childGone notes that a child of this set is gone. It ignores objects of others.
func (s *set) childGone(child client.Object) {
	known := s.kinds.Load()
	if known == nil || !s.carriesMarks(child) {
		return
	}
	for _, k := range known.kinds {
		u, untyped := child.(*unstructured.Unstructured)
		if k.typ != reflect.TypeOf(child).Elem() || untyped && u.GroupVersionKind() != k.gvk {
			continue
		}
		name := record.NameOf(k.gvk.GroupKind(), child)
		if ref := metav1.GetControllerOfNoCopy(child); ref != nil {
			s.applier.loops.childGone(ref.UID, name, child.GetUID(), s.applier.clock.Now())
		} else if m, marked := record.MarkOf(child, name.Kind); marked {
			s.applier.loops.childGone(m.UID, name, child.GetUID(), s.applier.clock.Now())
		}
		return
	}
}

// pathsOf lists the fields without their values, which may be secret.
func pathsOf(differences []compare.Difference) string {
	if len(differences) == 0 {
		return "metadata"
	}
	const most = 3
	var paths []string
	for _, d := range differences {
		if len(paths) == most {
			paths = append(paths, "…")
			break
		}
		paths = append(paths, d.Path)
	}
	return strings.Join(paths, ", ")
}
