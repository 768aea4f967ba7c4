package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

// TestOffsetIsStable proves that offsets never change. If two versions of an operator disagreed, an object would run twice
// or too late.
func TestOffsetIsStable(t *testing.T) {
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

func TestOffsetIsEven(t *testing.T) {
	const objects, spread = 10000, 100 * time.Second
	counts := map[time.Duration]int{}
	for i := range objects {
		offset := schedule.Offset(uid(i), spread)
		require.True(t, 0 <= offset && offset < spread && offset%time.Second == 0, "%v", offset)
		counts[offset]++
	}
	require.Len(t, counts, 100, "every offset occurs")
	for offset, n := range counts {
		require.InDelta(t, 100, n, 50, "at %v", offset)
	}
}

func TestOffsetSmallSpreads(t *testing.T) {
	for _, spread := range []time.Duration{-time.Hour, 0, 1, time.Second} {
		require.Zero(t, schedule.Offset(uid(1), spread), "a spread of %v has no offset", spread)
	}
	require.Zero(t, schedule.Offset("", time.Hour), "an object without a UID")
	for i := range 100 {
		require.LessOrEqual(t, schedule.Offset(uid(i), 1500*time.Millisecond), time.Second)
	}
	require.Less(t, schedule.Offset(uid(1), 1<<63-1), time.Duration(1<<63-1), "the longest spread")
}
