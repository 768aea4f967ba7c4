package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

func TestOptionsDeepCopyInto(t *testing.T) {
	options := schedule.Options{
		StartingDeadlineSeconds: new(int64(1)),
		BlackoutWindows:         []schedule.BlackoutWindow{{Start: "08:00", End: "09:00", Days: []string{"Mon"}}},
	}
	var copied schedule.Options
	options.DeepCopyInto(&copied)
	require.Equal(t, options, copied)
	options.BlackoutWindows[0].Days[0], *options.StartingDeadlineSeconds = "Tue", 2
	require.Equal(t, "Mon", copied.BlackoutWindows[0].Days[0])
	require.EqualValues(t, 1, *copied.StartingDeadlineSeconds)
}
