package predicates_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/predicates"
)

func paused(value string) func(*corev1.Pod) { return annotation(predicates.PausedAnnotation, value) }

func TestIsPaused(t *testing.T) {
	cases := map[string]struct {
		reason string
		of     func(*corev1.Pod)
		paused bool
		until  time.Time
	}{
		"None":       {"no annotation", unlabeled, false, time.Time{}},
		"True":       {"until it goes", paused("true"), true, time.Time{}},
		"Empty":      {"kubectl annotate … opblocks.dev/paused=", paused(""), true, time.Time{}},
		"False":      {"as none", paused("false"), false, time.Time{}},
		"Later":      {"the end is ahead", paused("2026-03-01T13:00:00Z"), true, noon.Add(time.Hour)},
		"Now":        {"the end is here", paused("2026-03-01T12:00:00Z"), false, time.Time{}},
		"Before":     {"the end has been", paused("2026-02-28T23:59:59Z"), false, time.Time{}},
		"Offset":     {"13:30 in Berlin", paused("2026-03-01T13:30:00+01:00"), true, noon.Add(30 * time.Minute)},
		"Unreadable": {"who wrote it wanted a pause", paused("tomorrow"), true, time.Time{}},
		"NoSuchDay":  {"a typing mistake must not start an operator", paused("2026-02-30T12:00:00Z"), true, time.Time{}},
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
		"Begins":      {"the status has to say so", p, updated(pod(), pod(paused("true"))), true},
		"Ends":        {"work goes on", p, updated(pod(paused("true")), pod()), true},
		"EndsByFalse": {"work goes on", p, updated(pod(paused("true")), pod(paused("false"))), true},
		"GetsAnEnd":   {"somebody has to come back then", p, updated(pod(paused("")), pod(paused("2026-03-01T13:00:00Z"))), true},
		"MovesItsEnd": {"somebody has to come back then", p, updated(pod(paused("2026-03-01T13:00:00Z")), pod(paused("2026-03-01T14:00:00Z"))), true},
		"OtherWords":  {"the same pause", p, updated(pod(paused("")), pod(paused("true"))), false},
		"OtherZone":   {"the same time", p, updated(pod(paused("2026-03-01T13:00:00Z")), pod(paused("2026-03-01T14:00:00+01:00"))), false},
		"Paused":      {"a change of something else", p, updated(pod(paused("")), pod(paused(""), generation(2))), false},
		"Lives":       {"a change of something else", p, updated(pod(), pod(generation(2))), false},
		"Created":     {"no update", p, created(pod(paused(""))), true},
	}.run(t)
}

func TestNotPaused(t *testing.T) {
	p := predicates.NotPaused(func() time.Time { return noon })
	later, before := paused("2026-03-01T13:00:00Z"), paused("2026-03-01T11:00:00Z")
	cases{
		"Lives":           {"not paused", p, updated(pod(), pod(generation(2))), true},
		"Paused":          {"why it is here", p, updated(pod(paused("")), pod(paused(""), generation(2))), false},
		"PausedForAWhile": {"until later", p, updated(pod(later), pod(later, generation(2))), false},
		"Over":            {"the end has been, though the annotation stays", p, updated(pod(before), pod(before, generation(2))), true},
		"Begins":          {"the status has to say so", p, updated(pod(), pod(paused(""))), true},
		"Ends":            {"work goes on", p, updated(pod(paused("")), pod()), true},
		"Deletion":        {"a pause stops no deletion", p, updated(pod(paused("")), pod(paused(""), beingDeleted)), true},
		"DeletionGoesOn":  {"nor its later passes", p, updated(pod(paused(""), beingDeleted), pod(paused(""), beingDeleted)), true},
		"Created":         {"the reconciler comes back when the pause ends", p, created(pod(later)), true},
		"Deleted":         {"gone", p, deleted(pod(paused(""))), true},
		"Generic":         {"as an update", p, generic(pod(paused(""))), false},
		"GenericLives":    {"as an update", p, generic(pod()), true},
		"GenericDeleted":  {"a pause stops no deletion", p, generic(pod(paused(""), beingDeleted)), true},
		"RealClock":       {"nil is time.Now", predicates.NotPaused(nil), updated(pod(), pod()), true},
	}.run(t)
}
