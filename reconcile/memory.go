package reconcile

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/writeloop"
)

// memory is what a reconciler remembers of its objects from one pass to the next. Nothing depends on it after a restart. It
// is safe for concurrent use. The zero value is ready to use.
type memory struct {
	mu      sync.Mutex
	objects map[types.NamespacedName]*remembered
}

// remembered is what is remembered of one object. There is one for every object, so it is small.
type remembered struct {
	current   types.UID // the UID of the object that was confirmed to be current, see [Checkpoint]
	quiet     quietVersion
	statusSum uint64   // the hash of the last patch of the status; 0 before the first one
	trouble   *trouble // nil for most objects
}

// trouble is what is remembered of an object that fails, is asked for, is cleaned up, or whose status is written again and again.
type trouble struct {
	failures   int               // the number of passes in a row that have failed
	warnings   map[string]string // by step: the last message of a step that has not succeeded since
	cleanedUp  types.UID         // the UID of the object whose cleanup has finished; the cache may still show it
	asked      asked             // the last request for a pass, see [RequestedAnnotation]
	answered   map[string]bool   // the names of the steps that have handled that request
	refused    time.Time         // the end of the first pass in a row with a forbidden request; zero for none
	statusLoop *writeloop.Loop   // nil unless the last patch of the status has repeated the one before
}

// asked is a request by [RequestedAnnotation].
type asked struct {
	uid   types.UID
	value string // empty if nothing is requested
}

// quietVersion is a version of an object in which a pass had nothing to do: all steps succeeded, nothing was written, and no
// other pass was asked for.
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

// troubleOf returns the trouble of an object, which is not changed.
func (m *memory) troubleOf(name types.NamespacedName) *trouble {
	if r, ok := m.objects[name]; ok && r.trouble != nil {
		return r.trouble
	}
	return noTrouble
}

// forget drops all that is remembered of an object.
func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
}

// failures returns the number of passes in a row that have failed.
func (m *memory) failures(name types.NamespacedName) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.troubleOf(name).failures
}

// addFailure counts a failed pass.
func (m *memory) addFailure(name types.NamespacedName) {
	m.changeTrouble(name, func(t *trouble) { t.failures++ })
}

// resetFailures is for a pass that has not failed.
func (m *memory) resetFailures(name types.NamespacedName) {
	m.clearTrouble(name, func(t *trouble) { t.failures = 0 })
}

// setRefused is for a pass to which something was forbidden. It returns when the first such pass in a row ended.
func (m *memory) setRefused(name types.NamespacedName, now time.Time) (first time.Time) {
	m.changeTrouble(name, func(t *trouble) {
		if t.refused.IsZero() {
			t.refused = now
		}
		first = t.refused
	})
	return first
}

// clearRefused is for a pass to which nothing was forbidden.
func (m *memory) clearRefused(name types.NamespacedName) {
	m.clearTrouble(name, func(t *trouble) { t.refused = time.Time{} })
}

// addWarning reports whether the message differs from the last one of the step: only then it is news. The conditions show
// what persists.
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

// clearWarning is for a step that has succeeded.
func (m *memory) clearWarning(name types.NamespacedName, step string) {
	m.clearTrouble(name, func(t *trouble) { delete(t.warnings, step) })
}

// ask remembers a request, unless the object acknowledges it already. It reports whether one of this number of steps has yet to
// handle it.
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

// isUnanswered reports whether a step has yet to handle a request.
func (m *memory) isUnanswered(name types.NamespacedName, a asked, step string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.troubleOf(name)
	return t.asked == a && !t.answered[step]
}

// setAnswered is for a step that has handled a request.
func (m *memory) setAnswered(name types.NamespacedName, a asked, step string) {
	m.clearTrouble(name, func(t *trouble) {
		if t.asked == a && t.answered != nil {
			t.answered[step] = true
		}
	})
}

// isCurrent reports whether this object was confirmed to be current. What was current once can only become newer.
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

// isQuiet reports whether a pass over the object in this version had nothing to do.
func (m *memory) isQuiet(name types.NamespacedName, version quietVersion) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.objects[name]
	return ok && r.quiet == version
}

// setQuiet remembers the version in which a pass had nothing to do. The zero value means that the pass had something to
// do.
func (m *memory) setQuiet(name types.NamespacedName, version quietVersion) {
	if version == (quietVersion{}) {
		m.clear(name, func(r *remembered) { r.quiet = version })
		return
	}
	m.change(name, func(r *remembered) { r.quiet = version })
}

// delayStatus returns what do returns for the loop of an object, if there is one of a patch with this hash.
func (m *memory) delayStatus(name types.NamespacedName, sum uint64, now time.Time, do func(*writeloop.Loop, time.Time) (time.Duration, bool)) (wait time.Duration, begins bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.objects[name]; ok && r.statusSum == sum && r.trouble != nil && r.trouble.statusLoop != nil && !r.trouble.statusLoop.HasEnded(now) {
		return do(r.trouble.statusLoop, now)
	}
	return 0, false
}

// countStatus counts a write of the status. Only one that repeats the last one has a loop.
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
			t.statusLoop.Count(now) // the write that is repeated
		}
		t.statusLoop.Count(now)
	})
}

// endStatusLoop removes the metric of an object that is forgotten.
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

// clear is like change, but does nothing if nothing is remembered of the object. That is the common case, and allocates
// nothing.
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
