package external

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// IntervalAnnotation is the annotation by which a person sets for one object how often the thing is observed: a duration such as "30m" or
// "2h", in place of [Resource.Every]. An interval of less than [Resource.EveryAtLeast] is raised to it. A value that is not a duration
// above zero counts as absent, and the reason InvalidInterval of the condition says so while the pass succeeds. A change of the annotation
// takes effect at once. It leads to a call only if the new interval has passed since the last observation.
const IntervalAnnotation = record.ObserveInterval

// interval returns how often the thing of an object is observed. isInvalid is whether the annotation has no interval.
func (r *Resource[T, S]) interval(obj client.Object) (every time.Duration, isInvalid bool) {
	value := obj.GetAnnotations()[IntervalAnnotation]
	if value == "" {
		return r.Every, false
	}
	every, err := time.ParseDuration(value)
	if err != nil || every <= 0 {
		return r.Every, true
	}
	return max(every, r.EveryAtLeast), false
}
