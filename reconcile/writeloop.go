package reconcile

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/writeloop"
)

// Two versions of an operator that run at once, or another controller, may change a status back each time that it is written. Then
// the same patch is sent again and again, and is sent less often. A status that only changes often has another patch each time.

// statusSum returns a hash of what a patch of the status sets, which is never 0, and the fields. Times of transitions do not count:
// they change each time that a condition is changed back.
func statusSum(patch []byte) (sum uint64, fields []string) {
	var sent struct {
		Status map[string]any `json:"status"`
	}
	if json.Unmarshal(patch, &sent) != nil {
		return 1, nil
	}
	for field := range sent.Status {
		fields = append(fields, "status."+field)
	}
	slices.Sort(fields)
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(withoutTransitions(sent.Status)) // it was decoded from JSON, and a hash returns no error
	return h.Sum64() | 1, fields
}

func withoutTransitions(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "lastTransitionTime")
		for key := range v {
			v[key] = withoutTransitions(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutTransitions(v[i])
		}
	}
	return v
}

// slowDownStatus returns how long a write of the status has to wait, 0 if it may be sent now.
func (p *pass[T]) slowDownStatus(ctx context.Context, sum uint64, fields []string) time.Duration {
	path := strings.Join(fields, ", ")
	wait, begins := p.memory.delayStatus(p.name, sum, p.clock.Now(), func(l *writeloop.Loop, now time.Time) (time.Duration, bool) {
		return l.Wait(now, p.metrics.loopsOrNil(), p.kind.Kind, p.name.Namespace, p.name.Name, path)
	})
	if begins {
		message := "the status is changed back again and again by another writer, so it is written less often: " + path
		log.FromContext(ctx).Info(message)
		p.event(corev1.EventTypeWarning, writeloop.Reason, "Reconcile", message)
	}
	return wait
}

// delayStatus returns what do returns for the loop of an object, if there is one of a patch with this hash.
func (m *memory) delayStatus(name types.NamespacedName, sum uint64, now time.Time, do func(*writeloop.Loop, time.Time) (time.Duration, bool)) (wait time.Duration, begins bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.objects[name]; ok && r.statusLoop != nil && r.statusSum == sum && !r.statusLoop.HasEnded(now) {
		return do(r.statusLoop, now)
	}
	return 0, false
}

// countStatus counts a write of the status. Only one that repeats the last one has a loop.
func (m *memory) countStatus(name types.NamespacedName, sum uint64, now time.Time, metric *prometheus.GaugeVec) {
	m.change(name, func(r *remembered) {
		repeats := r.statusSum == sum
		if r.statusLoop != nil && (!repeats || r.statusLoop.HasEnded(now)) {
			r.statusLoop.End(metric)
			r.statusLoop = nil
		}
		if r.statusSum = sum; !repeats {
			return
		}
		if r.statusLoop == nil {
			r.statusLoop = &writeloop.Loop{}
			r.statusLoop.Count(now) // the write that is repeated
		}
		r.statusLoop.Count(now)
	})
}

// endStatusLoop removes the metric of an object that is forgotten.
func (m *memory) endStatusLoop(name types.NamespacedName, metric *prometheus.GaugeVec) {
	m.clear(name, func(r *remembered) {
		if r.statusLoop != nil {
			r.statusLoop.End(metric)
		}
		r.statusLoop, r.statusSum = nil, 0
	})
}
