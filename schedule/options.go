package schedule

import (
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Options are what a spec says beside the schedule itself, for a spec to embed inline; the markers are kubebuilder's.
type Options struct {
	// TimeZone of the schedule and the windows, by its name in the IANA database. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// StartingDeadlineSeconds is how long after its time a run that was missed may still start. Default: no limit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`

	// SpreadSeconds is the time within which objects with the same schedule start, each at a place of its own. Default: 0,
	// all at once.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	SpreadSeconds int64 `json:"spreadSeconds,omitempty"`

	// BlackoutWindows in which nothing starts.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	BlackoutWindows []BlackoutWindow `json:"blackoutWindows,omitempty"`
}

// Offset is [Offset] for these rules.
func (r *Options) Offset(uid types.UID) time.Duration {
	return Offset(uid, time.Duration(min(max(r.SpreadSeconds, 0), day))*time.Second)
}

// hash tells schedules, zones and windows apart, in every version of this package alike.
func (r *Options) hash(schedule string) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%q %q %q", schedule, r.TimeZone, r.BlackoutWindows)
	return fmt.Sprintf("%016x", h.Sum64())
}

// DeepCopyInto is what controller-gen's code calls.
func (r *Options) DeepCopyInto(out *Options) {
	*out = *r
	if r.StartingDeadlineSeconds != nil {
		out.StartingDeadlineSeconds = new(*r.StartingDeadlineSeconds)
	}
	out.BlackoutWindows = slices.Clone(r.BlackoutWindows)
	for i := range out.BlackoutWindows {
		out.BlackoutWindows[i].Days = slices.Clone(out.BlackoutWindows[i].Days)
	}
}
