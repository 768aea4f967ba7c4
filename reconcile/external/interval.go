package external

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// IntervalAnnotation is the annotation by which a person sets for one object how often the step observes the thing. Its value is a
// duration such as "30m" or "2h", and replaces [Resource.Every]. If the value is less than [Resource.EveryAtLeast], that is used instead.
// A value that is not a positive duration is ignored: the pass succeeds, and its condition has the reason InvalidInterval. A change of the
// annotation takes effect at once. The API is called at once only if the new interval has passed since the last observation.
const IntervalAnnotation = record.ObserveInterval

// interval returns how often the step observes the thing of an object. isInvalid is true if the value of the annotation is invalid.
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
