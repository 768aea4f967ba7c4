// Package ownwrites remembers the objects that this process has written until the cache shows them, so that the next reconcile neither
// creates nor writes an object again.
//
// It only saves requests. Without it, or after a restart, preconditions make the API server refuse a write that follows a stale read, and
// the reconcile is repeated.
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

// trust is how long a write is remembered if the cache does not show it. A cache never shows it if its selector excludes the object, or if
// the API server was restored from a backup, so that its resource versions went back.
const trust = 10 * time.Second

// firstSweep is the number of writes at which writes that are older than trust are first removed.
const firstSweep = 64

// Writes remembers the API server's answers to writes until the cache shows them. It is safe for concurrent use.
type Writes struct {
	clock clock.PassiveClock
	count atomic.Int64 // the number of entries; it can be read without the lock
	mu    sync.Mutex
	byKey map[key]entry

	sweepAt int // the number of entries at which old ones are removed
}

type key struct {
	typ  reflect.Type
	kind string // the kind of an unstructured object, because all of these have the same Go type
	name types.NamespacedName
}

type entry struct {
	object client.Object
	until  time.Time
}

// New returns an empty memory.
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

// Record remembers obj, the API server's answer to a write. The caller must not modify obj afterwards.
func (w *Writes) Record(obj client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if len(w.byKey) >= w.sweepAt { // if events of the cache are filtered out, Observe does not remove their objects
		maps.DeleteFunc(w.byKey, func(_ key, e entry) bool { return !now.Before(e.until) })
		w.sweepAt = max(firstSweep, 2*len(w.byKey))
	}
	w.byKey[keyOf(obj)] = entry{object: obj, until: now.Add(trust)}
	w.count.Store(int64(len(w.byKey)))
}

// Observe is called for every event of the cache. If obj is not older than the remembered write, Observe forgets the write. It is also
// called for a deleted object, so that an object that was deleted right after its creation is not taken for existing. Observe reports
// whether obj is an object that we have just written.
func (w *Writes) Observe(obj client.Object) (ours bool) {
	if w.count.Load() == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e, ok := w.byKey[keyOf(obj)]
	if ok && !newer(e.object, obj) {
		w.forget(keyOf(obj))
	}
	return ok && e.object.GetUID() == obj.GetUID()
}

// Unseen returns the object with this name if we have written it and the cache has not shown the write yet. Otherwise it returns nil. It uses
// only the Go type of named, and the kind if named is unstructured. It must be called before the cache is read: if the event of the write
// came after the read and before Unseen, the write would be forgotten, and what was read would lack it.
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

// Newer returns what [Writes.Unseen] had returned before cached was read, if it is newer than cached. Otherwise it forgets the write, and
// returns cached. unseen may be nil.
func (w *Writes) Newer(unseen, cached client.Object) client.Object {
	if unseen == nil {
		return cached
	}
	if newer(unseen, cached) {
		return unseen
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := keyOf(cached); w.byKey[k].object == unseen {
		w.forget(k)
	}
	return cached
}

// Pending reports whether any write is not shown by the cache yet.
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

// Forget forgets the write of an object.
func (w *Writes) Forget(named client.Object, name types.NamespacedName) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(namedKey(named, name))
}

// ForgetIf forgets the writes of the objects for which a function returns true. The function must not call w.
func (w *Writes) ForgetIf(is func(client.Object) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.byKey, func(_ key, e entry) bool { return is(e.object) })
	w.count.Store(int64(len(w.byKey)))
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

// newer reports whether a is a later version of the same object than b. Resource versions can be compared since Kubernetes 1.35
// (KEP-5504). If they cannot be compared, newer returns false.
func newer(a, b client.Object) bool {
	if a.GetUID() != b.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0
}
