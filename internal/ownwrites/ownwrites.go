// Package ownwrites bridges the moment between our own write of an object and the
// cache showing it, so that the next pass neither creates nor writes it twice.
//
// It is an optimisation that nothing depends on: without it, or after a restart, the
// API server's preconditions refuse what a stale read would do, and the pass repeats.
package ownwrites

import (
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trust is how long a write is remembered when the cache does not come to show it: its
// selector excludes the object, or the server's versions went back with a restored backup.
const trust = 10 * time.Second

// firstSweep is with how many writes it is first looked for those whose time is over.
const firstSweep = 64

// Writes remembers objects as the API server answered them, until the cache has caught
// up. It is safe for concurrent use.
type Writes struct {
	clock clock.PassiveClock
	count atomic.Int64 // of the entries: reading it spares the lock when there are none
	mu    sync.Mutex
	byKey map[key]entry

	sweepAt int // so many entries: then those whose time is over go
}

type key struct {
	typ  reflect.Type
	kind string // of an unstructured object, whose type is that of all others
	name types.NamespacedName
}

type entry struct {
	object client.Object
	until  time.Time
}

// New gives an empty memory.
func New(c clock.PassiveClock) *Writes {
	return &Writes{clock: c, byKey: map[key]entry{}, sweepAt: firstSweep}
}

func keyOf(obj client.Object) key { return namedKey(obj, client.ObjectKeyFromObject(obj)) }

func namedKey(obj client.Object, name types.NamespacedName) key {
	k := key{typ: reflect.TypeOf(obj), name: name}
	if _, untyped := obj.(runtime.Unstructured); untyped {
		k.kind = obj.GetObjectKind().GroupVersionKind().GroupKind().String()
	}
	return k
}

// Record remembers obj as a write's answer. It must not be changed afterwards.
func (w *Writes) Record(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if len(w.byKey) >= w.sweepAt { // where the cache's events are filtered, nobody else forgets
		maps.DeleteFunc(w.byKey, func(_ key, e entry) bool { return !now.Before(e.until) })
		w.sweepAt = max(firstSweep, 2*len(w.byKey))
	}
	w.byKey[keyOf(obj)] = entry{object: obj, until: now.Add(trust)}
	w.count.Store(int64(len(w.byKey)))
}

// Observe is told of every event of the cache, and forgets what the cache has caught up
// with. The event of a deletion is among them, so that what was deleted right after it
// was created is not believed to be there.
func (w *Writes) Observe(obj client.Object) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.byKey[keyOf(obj)]; ok && !newer(e.object, obj) {
		w.forget(keyOf(obj))
	}
}

// Newer gives what we wrote, if that is newer than cached; otherwise cached.
func (w *Writes) Newer(cached client.Object) client.Object {
	if w.count.Load() == 0 {
		return cached
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.live(keyOf(cached))
	if ok && newer(e.object, cached) {
		return e.object
	}
	w.forget(keyOf(cached))
	return cached
}

// Unseen gives what we wrote of an object that the cache does not have, or nil. Only
// named's type, namespace and name are read.
func (w *Writes) Unseen(named client.Object, name types.NamespacedName) client.Object {
	if w.count.Load() == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := w.live(namedKey(named, name)); ok {
		return e.object
	}
	return nil
}

// Pending reports whether the cache is behind with anything that we wrote.
func (w *Writes) Pending() bool {
	if w.count.Load() == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.byKey {
		if _, ok := w.live(k); ok {
			return true
		}
	}
	return false
}

// Forget drops what is remembered of an object.
func (w *Writes) Forget(named client.Object, name types.NamespacedName) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(namedKey(named, name))
}

func (w *Writes) live(k key) (entry, bool) {
	e, ok := w.byKey[k]
	if ok && !w.clock.Now().Before(e.until) {
		w.forget(k)
		return entry{}, false
	}
	return e, ok
}

func (w *Writes) forget(k key) {
	delete(w.byKey, k)
	w.count.Store(int64(len(w.byKey)))
}

// newer reports whether a is a later version of the same object than b. Versions can be
// compared since Kubernetes 1.35 (KEP-5504); ones that cannot count as not newer.
func newer(a, b client.Object) bool {
	if a.GetUID() != b.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
