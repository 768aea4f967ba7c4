package schedule

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Options are the fields of a spec beside the schedule itself. Embed it inline in a spec; it has markers for
// controller-gen. [Status.Decide] uses it.
type Options struct {
	// TimeZone is the time zone of the schedule and of the blackout windows: a name of the IANA database, such as
	// Europe/Berlin. The default is UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// StartingDeadlineSeconds is how many seconds after its scheduled time, plus the object's share of spreadSeconds, a
	// missed run may still start. The default is no limit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// SpreadSeconds spreads the runs of objects with the same schedule over this many seconds. Each object always starts at
	// the same distance after its scheduled times. The default is 0: all start at once.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	SpreadSeconds int64 `json:"spreadSeconds,omitempty"`

	// BlackoutWindows are times of the week in which nothing starts. After a window, the latest missed run starts, delayed
	// by the object's share of spreadSeconds, if startingDeadlineSeconds allows.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	BlackoutWindows []BlackoutWindow `json:"blackoutWindows,omitempty"`
}

// Offset returns the offset of an object with this UID; see the function [Offset]. It uses 0 for a SpreadSeconds below 0,
// and 86400 for a SpreadSeconds above 86400.
func (o *Options) Offset(uid types.UID) time.Duration {
	return Offset(uid, time.Duration(min(max(o.SpreadSeconds, 0), day))*time.Second)
}

// hash returns a hash of schedule, time zone and blackout windows. It must be the same in every version of this package.
func (o *Options) hash(schedule string) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %q", schedule, o.TimeZone, o.BlackoutWindows)
	return fmt.Sprintf("%016x", h.Sum64())
}

// DeepCopy returns a copy of the options, and nil for nil. The code that controller-gen generates for a pointer calls it.
func (o *Options) DeepCopy() *Options {
	if o == nil {
		return nil
	}
	out := new(Options)
	o.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies the options into out. The code that controller-gen generates calls it.
func (o *Options) DeepCopyInto(out *Options) {
	*out = *o
	if o.StartingDeadlineSeconds != nil {
		out.StartingDeadlineSeconds = new(*o.StartingDeadlineSeconds)
	}
	out.BlackoutWindows = slices.Clone(o.BlackoutWindows)
	for i := range out.BlackoutWindows {
		out.BlackoutWindows[i].Days = slices.Clone(out.BlackoutWindows[i].Days)
	}
}
