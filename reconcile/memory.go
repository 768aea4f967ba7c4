package reconcile

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/writeloop"
)

// memory is what a reconciler remembers of its objects between passes. If it is lost in a restart, no harm is done. It is
// safe for concurrent use. The zero value is ready to use.
type memory struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*remembered
}

// remembered is what is remembered of one object. Every object has one, so the struct is small.
type remembered struct {
	current   types.UID // the UID of the object that was confirmed to be current, see [Checkpoint]
	quiet     quietVersion
	statusSum uint64   // the hash of the last status patch; 0 before the first one
	trouble   *trouble // nil for most objects
}

// trouble is remembered of an object to which something special has happened: it fails, a person has requested a pass, it was
// cleaned up, or its status is written again and again.
type trouble struct {
	failures   int               // how many passes in a row have failed
	warnings   map[string]string // by step: the last warning since the step last succeeded
	cleanedUp  types.UID         // the UID of the object whose cleanup has finished; the cache may still show it
	asked      asked             // the last request for a pass, see [RequestedAnnotation]
	answered   map[string]bool   // the names of the steps that have handled that request
	refused    time.Time         // when the first of the passes in a row ended that had a forbidden request; zero if there is none
	statusLoop *writeloop.Loop   // nil unless the last status patch was the same as the patch before
}

// asked is a request for a pass, by [RequestedAnnotation].
type asked struct {
	uid   types.UID
	value string // empty if nothing is requested
}

// quietVersion identifies a version of an object for which a pass had nothing to do: all steps succeeded, the pass wrote
// nothing, and no step asked for another pass.
type quietVersion struct {
	uid     types.UID
	version string
}

func (r *remembered) isEmpty() bool {
	return r.current == "" && r.quiet == (quietVersion{}) && r.statusSum == 0 && r.trouble == nil
}

func (t *trouble) isEmpty() bool {
	return t.failures == 0 && len(t.warnings) == 0 && t.cleanedUp == "" && t.refused.IsZero() && t.asked == (asked{}) && t.statusLoop == nil
}

// noTrouble is the trouble of an object that has none. It is never changed.
var noTrouble = &trouble{}

// troubleOf returns the trouble of an object. The caller must not change it.
func (m *memory) troubleOf(name types.NamespacedName) *trouble {
	if r, ok := m.objects[name]; ok && r.trouble != nil {
		return r.trouble
	}
	return noTrouble
}

// forget drops everything that is remembered of an object.
func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
}

// failures returns how many passes of an object in a row have failed.
func (m *memory) failures(name types.NamespacedName) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.troubleOf(name).failures
}

// addFailure counts a failed pass.
func (m *memory) addFailure(name types.NamespacedName) {
	m.changeTrouble(name, func(t *trouble) { t.failures++ })
}

// resetFailures sets the number of failures to zero, after a pass that has not failed.
func (m *memory) resetFailures(name types.NamespacedName) {
	m.clearTrouble(name, func(t *trouble) { t.failures = 0 })
}

// setRefused is called at the end of a pass in which a request was forbidden. It returns when the first of such passes in a row ended,
// which is now if the previous pass was not such a pass.
func (m *memory) setRefused(name types.NamespacedName, now time.Time) (first time.Time) {
	m.changeTrouble(name, func(t *trouble) {
		if t.refused.IsZero() {
			t.refused = now
		}
		first = t.refused
	})
	return first
}

// clearRefused is called after a pass without a forbidden request.
func (m *memory) clearRefused(name types.NamespacedName) {
	m.clearTrouble(name, func(t *trouble) { t.refused = time.Time{} })
}

// addWarning remembers the message of a step. It reports whether the message differs from the step's last one. Only
// then an event is emitted, because the conditions show a failure that lasts.
func (m *memory) addWarning(name types.NamespacedName, step, message string) (isNew bool) {
	m.changeTrouble(name, func(t *trouble) {
		last, known := t.warnings[step]
		isNew = !known || last != message
		if t.warnings == nil {
			t.warnings = map[string]string{}
		}
		t.warnings[step] = message
	})
	return isNew
}

// clearWarning forgets the warning of a step that has succeeded.
func (m *memory) clearWarning(name types.NamespacedName, step string) {
	m.clearTrouble(name, func(t *trouble) { delete(t.warnings, step) })
}

// ask remembers a request for a pass, unless the status of the object already acknowledges it. It reports whether at least one
// step still has to handle the request. steps is the number of steps.
func (m *memory) ask(name types.NamespacedName, a asked, acknowledged bool, steps int) (open bool) {
	known := false
	m.clearTrouble(name, func(t *trouble) {
		known = t.asked == a
		open = known && len(t.answered) < steps
	})
	if known || acknowledged {
		return open
	}
	m.changeTrouble(name, func(t *trouble) { t.asked, t.answered = a, map[string]bool{} })
	return true
}

// isUnanswered reports whether a step still has to handle a request.
func (m *memory) isUnanswered(name types.NamespacedName, a asked, step string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.troubleOf(name)
	return t.asked == a && !t.answered[step]
}

// setAnswered remembers that a step has handled a request.
func (m *memory) setAnswered(name types.NamespacedName, a asked, step string) {
	m.clearTrouble(name, func(t *trouble) {
		if t.asked == a && t.answered != nil {
			t.answered[step] = true
		}
	})
}

// isCurrent reports whether the process has confirmed that its version of this object is current. The cache only becomes newer,
// so the answer stays true.
func (m *memory) isCurrent(name types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[name]
	return ok && uid != "" && r.current == uid
}

func (m *memory) setCurrent(name types.NamespacedName, uid types.UID) {
	m.change(name, func(r *remembered) { r.current = uid })
}

// isCleanedUp reports whether the cleanup of this object has finished.
func (m *memory) isCleanedUp(name types.NamespacedName, uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uid != "" && m.troubleOf(name).cleanedUp == uid
}

func (m *memory) setCleanedUp(name types.NamespacedName, uid types.UID) {
	m.changeTrouble(name, func(t *trouble) { t.cleanedUp = uid })
}

// isQuiet reports whether an earlier pass had nothing to do for this version of the object.
func (m *memory) isQuiet(name types.NamespacedName, version quietVersion) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[name]
	return ok && r.quiet == version
}

// setQuiet remembers the version for which a pass had nothing to do. version is the zero value if the pass had
// something to do.
func (m *memory) setQuiet(name types.NamespacedName, version quietVersion) {
	if version == (quietVersion{}) {
		m.clear(name, func(r *remembered) { r.quiet = version })
		return
	}
	m.change(name, func(r *remembered) { r.quiet = version })
}

// delayStatus calls do with the write loop of the object and returns its results. If the object has no loop of the status patch
// with this hash, it returns zeros.
func (m *memory) delayStatus(name types.NamespacedName, sum uint64, now time.Time, do func(*writeloop.Loop, time.Time) (time.Duration, bool)) (wait time.Duration, begins bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.objects[name]; ok && r.statusSum == sum && r.trouble != nil && r.trouble.statusLoop != nil && !r.trouble.statusLoop.HasEnded(now) {
		return do(r.trouble.statusLoop, now)
	}
	return 0, false
}

// countStatus counts a write of the status. The object gets a write loop only when a write repeats the write before.
func (m *memory) countStatus(name types.NamespacedName, sum uint64, now time.Time, metric *prometheus.GaugeVec) {
	repeats := false
	m.change(name, func(r *remembered) { repeats, r.statusSum = r.statusSum == sum, sum })
	m.clearTrouble(name, func(t *trouble) {
		if t.statusLoop != nil && (!repeats || t.statusLoop.HasEnded(now)) {
			t.statusLoop.End(metric)
			t.statusLoop = nil
		}
	})
	if !repeats {
		return
	}
	m.changeTrouble(name, func(t *trouble) {
		if t.statusLoop == nil {
			t.statusLoop = &writeloop.Loop{}
			t.statusLoop.Count(now) // count also the previous write, which this one repeats
		}
		t.statusLoop.Count(now)
	})
}

// endStatusLoop ends the write loop of an object and removes its metric, because the object is forgotten.
func (m *memory) endStatusLoop(name types.NamespacedName, metric *prometheus.GaugeVec) {
	m.clearTrouble(name, func(t *trouble) {
		if t.statusLoop != nil {
			t.statusLoop.End(metric)
		}
		t.statusLoop = nil
	})
	m.clear(name, func(r *remembered) { r.statusSum = 0 })
}

// change changes what is remembered of an object.
func (m *memory) change(name types.NamespacedName, do func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.objects == nil {
		m.objects = map[types.NamespacedName]*remembered{}
	}
	r, ok := m.objects[name]
	if !ok {
		r = &remembered{}
		m.objects[name] = r
	}
	do(r)
	if r.isEmpty() {
		delete(m.objects, name)
	}
}

// clear is like change, but does nothing if nothing is remembered of the object. That is the usual case, and
// allocates nothing.
func (m *memory) clear(name types.NamespacedName, do func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.objects[name]; ok {
		do(r)
		if r.isEmpty() {
			delete(m.objects, name)
		}
	}
}

// changeTrouble is change for the trouble of an object.
func (m *memory) changeTrouble(name types.NamespacedName, do func(*trouble)) {
	m.change(name, func(r *remembered) {
		if r.trouble == nil {
			r.trouble = &trouble{}
		}
		r.changeTrouble(do)
	})
}

// clearTrouble is clear for the trouble of an object.
func (m *memory) clearTrouble(name types.NamespacedName, do func(*trouble)) {
	m.clear(name, func(r *remembered) {
		if r.trouble != nil {
			r.changeTrouble(do)
		}
	})
}

func (r *remembered) changeTrouble(do func(*trouble)) {
	if do(r.trouble); r.trouble.isEmpty() {
		r.trouble = nil
	}
}
