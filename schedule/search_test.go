package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/schedule"
)

func TestDueOtherTimes(t *testing.T) {
	robfig, err := cron.ParseStandard("* 1 * * *")
	require.NoError(t, err)
	cases := map[string]struct {
		reason     string
		times      times
		since, now string
		want       shown
	}{
		"Waiting": {
			"Nothing is due yet.", robfig, "2026-03-01 02:00", "2026-03-02 00:59",
			shown{"Waiting", "", "2026-03-02 01:00:00", "2026-03-02 01:00:00", 0},
		},
		"One": {
			"The first time is due.", robfig, "2026-03-01 02:00", "2026-03-02 01:00",
			shown{"Start", "2026-03-02 01:00:00", "2026-03-02 01:01:00", "2026-03-02 01:01:00", 0},
		},
		"Many": {
			"Sixty each night, and none in the last hours; they are counted up to the limit.", robfig, "2025-03-01 02:00", "2026-03-02 23:00",
			shown{"Start", "2026-03-02 01:59:00", "2026-03-03 01:00:00", "2026-03-03 01:00:00", 99},
		},
		"Century": {
			"The range is longer than a duration can be.", robfig, "1026-03-01 02:00", "2026-03-02 23:00",
			shown{"Start", "2026-03-02 01:59:00", "2026-03-03 01:00:00", "2026-03-03 01:00:00", 99},
		},
		"Never": {
			"Next returns the zero time.", never{}, "2026-03-01 02:00", "2026-03-02 01:00", shown{Verdict: "Waiting"},
		},
		"Stuck": {
			"Next returns a time that is not after its argument.", stuck{}, "2026-03-01 02:00", "2026-03-02 01:00", shown{Verdict: "Waiting"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := 0
			d, err := schedule.Due(utc(t, tc.now), schedule.Input{Schedule: counting{tc.times, &calls}, Since: at(t, tc.since)})
			require.NoError(t, err)
			if diff := cmp.Diff(tc.want, show(d)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			require.LessOrEqual(t, calls, 28+63+100+4, "the number of calls is bounded, however long the range is")
		})
	}
}

func TestDueOtherTimesExactly(t *testing.T) {
	begin := utc(t, "2026-03-01 00:00")
	since := new(metav1.NewTime(begin))
	for _, gap := range []time.Duration{1, 2, 3, time.Millisecond, time.Second, time.Minute - 1, time.Minute, time.Hour + 1, 1000 * time.Hour} {
		for _, rest := range []time.Duration{0, 1, 2, time.Second, time.Minute, time.Minute + 1, 7777 * time.Hour} {
			times := once{begin.Add(gap), begin.Add(2 * gap), begin.Add(2*gap + 1)}
			now := begin.Add(2*gap + 1 + rest)
			d, err := schedule.Due(now, schedule.Input{Schedule: times, Since: since})
			require.NoError(t, err)
			require.Equal(t, begin.Add(2*gap+1), d.ScheduledTime, "%v %v", gap, rest)
			require.Zero(t, d.Next)
			require.Zero(t, d.RequeueAt)
		}
	}
}
