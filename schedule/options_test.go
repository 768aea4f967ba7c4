package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestDeepCopy(t *testing.T) {
	options := &schedule.Options{TimeZone: "Europe/Berlin", StartingDeadlineSeconds: new(int64(1))}
	copied := options.DeepCopy()
	require.Equal(t, options, copied)
	require.NotSame(t, options.StartingDeadlineSeconds, copied.StartingDeadlineSeconds)
	status := &schedule.Status{MissedRuns: 1, ScheduleSince: new(metav1.Now())}
	require.Equal(t, status, status.DeepCopy())
	require.NotSame(t, status.ScheduleSince, status.DeepCopy().ScheduleSince)
	require.Nil(t, (*schedule.Options)(nil).DeepCopy())
	require.Nil(t, (*schedule.Status)(nil).DeepCopy())
}
