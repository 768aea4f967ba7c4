package fakemanager

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// freeze says from which change on the cache does not show the changes of a kind, and what ends that.
type freeze struct {
	from      int64          // the revision of the first change that is not shown; earlier changes are still shown
	passes    int            // the freeze ends when every known object has had this number of passes, unless Thaw ends it earlier
	ran       map[Target]int // the number of passes of each object that have ended during the freeze
	merged    bool           // when the freeze ends, each object gets one event, and not one event for each change
	counts    bool           // a pass has begun during the freeze, so from now on passes that end are counted
	requested int            // how often NextFrozen has requested a pass of every known object
	past      bool           // the process began with an earlier state of the kind
}

// maxPasses is the number of passes of one object after which a freeze always ends. Without this limit, an operator might never become
// quiet: it may repair something again and again that the garbage collector deletes.
const maxPasses = 5

// FreezeForPasses makes the cache hide the change and later changes of its kind, until every known object has had the given number of
// passes. A known object is one that the process has reconciled before. FreezeForPasses returns false if the kind is not watched or is
// frozen already.
func (w *WatchedKinds) FreezeForPasses(change *memoryserver.Change, passes int) bool {
	return w.freeze(change.GVK, freeze{from: change.Revision, passes: passes}, forms[:]...)
}

// FreezeWhole is like FreezeForPasses with one pass, but freezes only the informers of whole objects. The informer of metadata shows the
// change.
func (w *WatchedKinds) FreezeWhole(change *memoryserver.Change) bool {
	return w.freeze(change.GVK, freeze{from: change.Revision, passes: 1}, typed, untyped, direct)
}

// FreezeMetadata is like FreezeForPasses with one pass, but freezes only the informer of metadata. The informers of whole objects show the
// change.
func (w *WatchedKinds) FreezeMetadata(change *memoryserver.Change) bool {
	return w.freeze(change.GVK, freeze{from: change.Revision, passes: 1}, metadata)
}

// FreezeUntilThaw makes the cache hide the change and later changes of its kind, until [WatchedKinds.Thaw] is called, or one object has had
// five passes. Then each object gets one event for all these changes, as after a broken watch. FreezeUntilThaw returns false if the kind is
// not watched or is frozen already.
func (w *WatchedKinds) FreezeUntilThaw(change *memoryserver.Change) bool {
	return w.freeze(change.GVK, freeze{from: change.Revision, passes: maxPasses, merged: true, requested: maxPasses}, forms[:]...)
}

// freeze freezes a kind in the given forms, such as whole objects or metadata.
func (w *WatchedKinds) freeze(gvk schema.GroupVersionKind, f freeze, in ...form) (done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.formsOf(gvk)
	if slices.ContainsFunc(all, func(k *kind) bool { return k.frozen != nil }) {
		return false
	}
	for _, k := range all {
		if slices.Contains(in, k.form) {
			k.frozen, done = f.clone(), true
		}
	}
	return done
}

// clone returns a copy for another form of the kind. It returns nil if f is nil: the kind is not frozen.
func (f *freeze) clone() *freeze {
	if f == nil {
		return nil
	}
	made := *f
	made.ran = maps.Clone(f.ran)
	return &made
}

// Thaw ends the freeze of one kind, in all its forms and versions. It returns false if no kind is frozen.
func (w *WatchedKinds) Thaw() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	frozen := w.frozenKinds()
	if len(frozen) == 0 {
		return false
	}
	for _, k := range frozen {
		if k.gvk.GroupKind() == frozen[0].gvk.GroupKind() {
			k.thaw()
		}
	}
	return true
}

// frozenKinds returns the kinds that are frozen, sorted by their names and forms, so that runs are deterministic. The caller holds the
// lock.
func (w *WatchedKinds) frozenKinds() []*kind {
	var all []*kind
	for _, k := range w.kinds {
		if k.frozen != nil {
			all = append(all, k)
		}
	}
	slices.SortFunc(all, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(a.gvk.String(), b.gvk.String()), cmp.Compare(a.form, b.form))
	})
	return all
}

// IsInThePast reports whether the process began with an old state of a kind, and the cache still shows that old state.
func (w *WatchedKinds) IsInThePast() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		if k.frozen != nil && k.frozen.past {
			return true
		}
	}
	return false
}

// passBegins notes in each freeze that a pass has begun during the freeze. A pass that was running when the freeze began is not counted.
func (w *WatchedKinds) passBegins() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		if k.frozen != nil {
			k.frozen.counts = true
		}
	}
}

// passEnded counts a pass in each freeze during which it began. It ends the freezes that have had enough passes.
func (m *Manager) passEnded(t Target) {
	m.cache.Kinds.mu.Lock()
	defer m.cache.Kinds.mu.Unlock()
	for _, k := range m.cache.Kinds.kinds {
		f := k.frozen
		if f == nil || !f.counts {
			continue
		}
		if f.ran == nil {
			f.ran = map[Target]int{}
		}
		if f.ran[t]++; f.ran[t] == maxPasses || m.hasRun(f, f.passes) {
			k.thaw()
		}
	}
}

// hasRun reports whether every known object has had the given number of passes during the freeze, and no request without a delay is in a
// queue.
func (m *Manager) hasRun(f *freeze, passes int) bool {
	for _, c := range m.controllers {
		if c.queue.Len() > 0 {
			return false
		}
		for request := range c.known {
			if f.ran[Target{c.name, request}] < passes {
				return false
			}
		}
	}
	return true
}

// NextFrozen returns a kind whose freeze needs another pass of every known object to end. The caller enqueues requests for these passes, and
// NextFrozen counts how often it has returned the kind. Without such a kind, it returns "".
func (m *Manager) NextFrozen() (kind string) {
	m.cache.Kinds.mu.Lock()
	defer m.cache.Kinds.mu.Unlock()
	for _, k := range m.cache.Kinds.frozenKinds() {
		if f := k.frozen; f.requested < f.passes && m.hasRun(f, f.requested) {
			f.requested++
			return k.gvk.Kind
		}
	}
	return ""
}

// hides reports whether the freeze keeps the cache from showing the change. f is nil if the kind is not frozen: then nothing is hidden.
func (f *freeze) hides(change *memoryserver.Change) bool {
	return f != nil && change.Revision >= f.from
}

func (k *kind) thaw() {
	if k.frozen.merged {
		k.merge()
	}
	k.frozen = nil
}

// merge replaces the pending changes of each object by one change, as a client sees them that lists the kind again.
func (k *kind) merge() {
	merged := map[client.ObjectKey]int{}
	var pending []memoryserver.Change
	for _, change := range k.pending {
		i, known := merged[change.Key]
		if !known {
			merged[change.Key] = len(pending)
			pending = append(pending, change)
			continue
		}
		change.Old = pending[i].Old
		pending[i] = change
	}
	last := k.seen
	if len(k.pending) > 0 {
		last = k.pending[len(k.pending)-1].Revision
	}
	k.pending = k.pending[:0]
	for _, change := range pending {
		if change.Old != nil || change.New != nil {
			change.Revision = last // a list has the same revision for all objects
			k.pending = append(k.pending, change)
		}
	}
}
