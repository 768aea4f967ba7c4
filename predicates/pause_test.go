package predicates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/predicates"
)

func paused(value string) func(*corev1.Pod) { return annotation("opblocks.dev/paused", value) }

func TestIsPaused(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     func(*corev1.Pod)
		paused bool
		until  time.Time
	}{
		"None":       {"the annotation is absent", unlabeled, false, time.Time{}},
		"True":       {"until the annotation is removed", paused("true"), true, time.Time{}},
		"Empty":      {"kubectl annotate … opblocks.dev/paused=", paused(""), true, time.Time{}},
		"False":      {"as without the annotation", paused("false"), false, time.Time{}},
		"Later":      {"the end is in the future", paused("2026-03-01T13:00:00Z"), true, noon.Add(time.Hour)},
		"Now":        {"the pause ends at this moment", paused("2026-03-01T12:00:00Z"), false, time.Time{}},
		"Before":     {"the end is in the past", paused("2026-02-28T23:59:59Z"), false, time.Time{}},
		"Offset":     {"the time has an offset from UTC", paused("2026-03-01T13:30:00+01:00"), true, noon.Add(30 * time.Minute)},
		"Unreadable": {"the author wanted a pause", paused("tomorrow"), true, time.Time{}},
		"NoSuchDay":  {"a typing error must not start the operator", paused("2026-02-30T12:00:00Z"), true, time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			is, until := predicates.IsPaused(pod(tc.of), noon)
			require.Equal(t, tc.paused, is, tc.reason)
			require.True(t, tc.until.Equal(until), "%s: until %s", tc.reason, until)
		})
	}
}

func TestPauseChanged(t *testing.T) {
	p := predicates.PauseChanged()
	cases{
		"Begins":      {"the reconciler has to show it", p, updated(pod(), pod(paused("true"))), true},
		"Ends":        {"the reconciler has to continue", p, updated(pod(paused("true")), pod()), true},
		"EndsByFalse": {"the reconciler has to continue", p, updated(pod(paused("true")), pod(paused("false"))), true},
		"GetsAnEnd":   {"the reconciler has to requeue for the end", p, updated(pod(paused("")), pod(paused("2026-03-01T13:00:00Z"))), true},
		"MovesItsEnd": {"the reconciler has to requeue for the end", p, updated(pod(paused("2026-03-01T13:00:00Z")), pod(paused("2026-03-01T14:00:00Z"))), true},
		"OtherValue":  {"the same pause, written differently", p, updated(pod(paused("")), pod(paused("true"))), false},
		"OtherZone":   {"the same time in another zone", p, updated(pod(paused("2026-03-01T13:00:00Z")), pod(paused("2026-03-01T14:00:00+01:00"))), false},
		"Paused":      {"something else changed", p, updated(pod(paused("")), pod(paused(""), generation(2))), false},
		"NotPaused":   {"something else changed", p, updated(pod(), pod(generation(2))), false},
		"Created":     {"not an update", p, created(pod(paused(""))), true},
	}.run(t)
}

func TestNotPaused(t *testing.T) {
	p := predicates.NotPaused(func() time.Time { return noon })
	later, before := paused("2026-03-01T13:00:00Z"), paused("2026-03-01T11:00:00Z")
	cases{
		"NotPaused":        {"the object is not paused", p, updated(pod(), pod(generation(2))), true},
		"Paused":           {"the object is paused", p, updated(pod(paused("")), pod(paused(""), generation(2))), false},
		"PausedForAWhile":  {"the object is paused until later", p, updated(pod(later), pod(later, generation(2))), false},
		"Over":             {"the end is in the past, though the annotation is still there", p, updated(pod(before), pod(before, generation(2))), true},
		"Begins":           {"the reconciler has to show it", p, updated(pod(), pod(paused(""))), true},
		"Ends":             {"the reconciler has to continue", p, updated(pod(paused("")), pod()), true},
		"Deletion":         {"a pause does not stop a deletion", p, updated(pod(paused("")), pod(paused(""), beingDeleted)), true},
		"DeletionGoesOn":   {"a pause does not stop a later update of a deletion either", p, updated(pod(paused(""), beingDeleted), pod(paused(""), beingDeleted)), true},
		"Created":          {"the reconciler requeues the object for the end of the pause", p, created(pod(later)), true},
		"Deleted":          {"the object is gone", p, deleted(pod(paused(""))), true},
		"Generic":          {"as for an update", p, generic(pod(paused(""))), false},
		"GenericNotPaused": {"as for an update", p, generic(pod()), true},
		"GenericDeleted":   {"a pause does not stop a deletion", p, generic(pod(paused(""), beingDeleted)), true},
		"RealClock":        {"nil is time.Now", predicates.NotPaused(nil), updated(pod(), pod()), true},
	}.run(t)
}
