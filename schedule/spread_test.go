package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// uid is one as the API server would give it.
func uid(i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-5c1d-4f5e-9d7a-3b2a%08x", uint32(i)*2654435761, i))
}

// Two versions of an operator that disagree would run an object twice, or too late.
func TestOffsetNeverChanges(t *testing.T) {
	var got []time.Duration
	for i := range 8 {
		got = append(got, schedule.Offset(uid(i), 10*time.Minute))
	}
	want := []time.Duration{
		109 * time.Second, 187 * time.Second, 527 * time.Second, 18 * time.Second,
		214 * time.Second, 238 * time.Second, 72 * time.Second, 57 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestOffsetsAreWithinTheSpreadAndEven(t *testing.T) {
	const objects, spread = 10000, 100 * time.Second
	places := map[time.Duration]int{}
	for i := range objects {
		offset := schedule.Offset(uid(i), spread)
		require.True(t, 0 <= offset && offset < spread && offset%time.Second == 0, "%v", offset)
		places[offset]++
	}
	require.Len(t, places, 100, "every place is taken")
	for place, n := range places {
		require.InDelta(t, 100, n, 50, "at %v", place)
	}
}

func TestOffsetOfLittle(t *testing.T) {
	for _, spread := range []time.Duration{-time.Hour, 0, 1, time.Second} {
		require.Zero(t, schedule.Offset(uid(1), spread), "a spread of %v has one place", spread)
	}
	require.Zero(t, schedule.Offset("", time.Hour), "an object that the API server has not seen")
	for i := range 100 {
		require.LessOrEqual(t, schedule.Offset(uid(i), 1500*time.Millisecond), time.Second)
	}
	require.Less(t, schedule.Offset(uid(1), 1<<63-1), time.Duration(1<<63-1), "the longest spread")
}
