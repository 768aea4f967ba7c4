//go:build !race

// Package schedule starts no goroutine, so the race detector would only slow down the many random plans.

package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/opblocks/opblocks/schedule"
)

// TestStartAfterBlackoutWindow follows 100 objects with a spread of an hour, which are reconciled at least every ten
// minutes. If a blackout window has delayed a run, the run starts at the end of the window plus the offset of the object,
// whenever the operator was down.
func TestStartAfterBlackoutWindow(t *testing.T) {
	const spread = 3600
	office := []schedule.BlackoutWindow{{Start: "08:00", End: "18:00"}}
	lunch := []schedule.BlackoutWindow{{Start: "08:00", End: "12:00"}, {Start: "12:30", End: "18:00"}}
	always := func(want string) func(time.Duration) (string, time.Duration) {
		return func(offset time.Duration) (string, time.Duration) { return want, offset }
	}
	var fiftyMinutes []schedule.BlackoutWindow
	for hour := range 24 {
		fiftyMinutes = append(fiftyMinutes, schedule.BlackoutWindow{Start: fmt.Sprintf("%02d:00", hour), End: fmt.Sprintf("%02d:50", hour)})
	}
	cases := map[string]struct {
		reason     string
		schedule   string
		windows    []schedule.BlackoutWindow
		deadline   *int64
		down, upAt string
		want       func(offset time.Duration) (string, time.Duration) // returns the time of day to which want is added, and the time that is added
	}{
		"Up": {
			reason:   "The operator is up all the time.",
			schedule: "0 12 * * *", windows: office, want: always("18:00"),
		},
		"UpAtTheStartOfTheWindow": {
			reason:   "For one half of the objects the offset leads into the window.",
			schedule: "30 7 * * *", windows: office, want: func(offset time.Duration) (string, time.Duration) {
				if offset < 30*time.Minute {
					return "07:30", offset
				}
				return "18:00", offset
			},
		},
		"DownUntilInside": {
			reason:   "The operator was down from before the scheduled time until inside the window.",
			schedule: "0 7 * * *", windows: office, down: "06:30", upAt: "09:05", want: always("18:00"),
		},
		"DownUntilJustBeforeTheEnd": {
			reason:   "The last reconcile before the end of the window was less than ten minutes before it.",
			schedule: "0 7 * * *", windows: office, down: "06:30", upAt: "17:55", want: always("18:00"),
		},
		"DownUntilAfter": {
			reason:   "The operator was down over the whole window: those whose place has passed start at once.",
			schedule: "0 7 * * *", windows: office, down: "06:30", upAt: "18:20", want: func(offset time.Duration) (string, time.Duration) {
				return "18:00", max(offset, 20*time.Minute)
			},
		},
		"DownUntilAfterTheSpread": {
			reason:   "All are late, as after any downtime.",
			schedule: "0 7 * * *", windows: office, down: "06:30", upAt: "21:00", want: func(time.Duration) (string, time.Duration) {
				return "21:00", 0
			},
		},
		"ShorterThanTheSpread": {
			reason:   "Only those whose place is in the window are delayed.",
			schedule: "0 12 * * *", windows: []schedule.BlackoutWindow{{Start: "12:10", End: "12:20"}},
			want: func(offset time.Duration) (string, time.Duration) {
				if offset >= 10*time.Minute && offset < 20*time.Minute {
					return "12:20", offset
				}
				return "12:00", offset
			},
		},
		"ShorterThanTheSpreadAndDown": {
			reason:   "Only those whose place was before or in the window are delayed.",
			schedule: "0 12 * * *", windows: []schedule.BlackoutWindow{{Start: "12:10", End: "12:20"}}, down: "11:00", upAt: "12:15",
			want: func(offset time.Duration) (string, time.Duration) {
				if offset < 20*time.Minute {
					return "12:20", offset
				}
				return "12:00", offset
			},
		},
		"Touching": {
			reason:   "Two windows without a time between them are as one.",
			schedule: "0 9 * * *", windows: []schedule.BlackoutWindow{{Start: "08:00", End: "12:00"}, {Start: "12:00", End: "18:00"}},
			want: always("18:00"),
		},
		"Consecutive": {
			reason:   "The time between two windows is shorter than the spread: those that have no place in it wait for the second.",
			schedule: "0 9 * * *", windows: lunch, want: func(offset time.Duration) (string, time.Duration) {
				if offset < 30*time.Minute {
					return "12:00", offset
				}
				return "18:00", offset
			},
		},
		"ConsecutiveAndDown": {
			reason:   "The operator was down until inside the second window.",
			schedule: "0 7 * * *", windows: lunch, down: "06:30", upAt: "14:00", want: always("18:00"),
		},
		"ConsecutiveAndDownUntilBetween": {
			reason:   "The operator was down until the time between the windows.",
			schedule: "0 7 * * *", windows: lunch, down: "06:30", upAt: "12:10", want: func(offset time.Duration) (string, time.Duration) {
				if offset < 30*time.Minute {
					return "12:00", max(offset, 10*time.Minute)
				}
				return "18:00", offset
			},
		},
		"InclusiveEnd": {
			reason:   "Somebody took the end for the last minute; almost all wait for the second window.",
			schedule: "0 9 * * *", windows: []schedule.BlackoutWindow{{Start: "08:00", End: "11:59"}, {Start: "12:00", End: "18:00"}},
			want: func(offset time.Duration) (string, time.Duration) {
				if offset < time.Minute {
					return "11:59", offset
				}
				return "18:00", offset
			},
		},
		"NeverOpenForTheSpread": {
			reason:   "No time between windows is as long as the spread, so all start within the first, evenly.",
			schedule: "0 12 * * *", windows: fiftyMinutes, want: func(offset time.Duration) (string, time.Duration) {
				return "12:50", offset % (10 * time.Minute)
			},
		},
		"Deadline": {
			reason:   "The window makes all equally late, and the deadline just allows it.",
			schedule: "0 12 * * *", windows: office, deadline: new(int64(6 * 3600)), want: always("18:00"),
		},
		"DeadlineAndDown": {
			reason:   "The deadline counts from the scheduled time and the offset, wherever the operator was down.",
			schedule: "0 7 * * *", windows: office, deadline: new(int64(11 * 3600)), down: "06:30", upAt: "09:05", want: always("18:00"),
		},
		"DeadlinePassed": {
			reason:   "The window makes all equally late, and none may start.",
			schedule: "0 12 * * *", windows: office, deadline: new(int64(6*3600 - 1)),
			want: func(time.Duration) (string, time.Duration) { return "", 0 },
		},
		"DeadlineAndConsecutive": {
			reason:   "The deadline does not allow to wait for the second window.",
			schedule: "0 11 * * *", windows: lunch, deadline: new(int64(2 * 3600)), want: func(offset time.Duration) (string, time.Duration) {
				return "12:00", offset % (30 * time.Minute)
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := schedule.Options{SpreadSeconds: spread, BlackoutWindows: tc.windows, StartingDeadlineSeconds: tc.deadline}
			for i := range 100 {
				var status schedule.Status
				started, uid, object := "", uid(i), waits("a", time.Time{}).Object
				for now := utc(t, "2026-03-02 06:00"); now.Before(utc(t, "2026-03-03 06:00")); {
					if tc.down != "" && !now.Before(utc(t, "2026-03-02 "+tc.down)) && now.Before(utc(t, "2026-03-02 "+tc.upAt)) {
						now = utc(t, "2026-03-02 "+tc.upAt)
					}
					d, err := status.Decide(now, uid, tc.schedule, options)
					require.NoError(t, err)
					if d.Verdict == schedule.Start {
						require.Empty(t, started, "one run")
						started = now.Format(dated + ":05")
					}
					if d.Verdict == schedule.Start || d.Verdict == schedule.TooLate {
						_, ok := status.Candidate(now, object, false, options.Offset(uid))
						require.True(t, ok, "it waits to start, at %v: %v", now, status.NextScheduleTime)
						status.Record(d)
					}
					now = now.Add(d.RequeueAfter(now))
				}
				want := ""
				if at, more := tc.want(options.Offset(uid)); at != "" {
					want = utc(t, "2026-03-02 "+at).Add(more).Format(dated + ":05")
				}
				require.Equal(t, want, started, "%s (offset %v)", tc.reason, options.Offset(uid))
			}
		})
	}
}

// The test follows 3,000 random plans for three days each. A deferred run starts at RequeueAt, unless a later run is due
// instead. It is never found too late at that time.
func TestDeferredRunStarts(t *testing.T) {
	deferred, tooLate := 0, map[string]int{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 0))
		in := randomPlan(t, r)
		now := in.Since.Time
		var promised schedule.Decision
		for end := now.AddDate(0, 0, 3); now.Before(end); {
			d, err := schedule.Due(now, in)
			require.NoError(t, err)
			inTime := !now.After(promised.RequeueAt) // the operator was not down
			if promised.Verdict == schedule.Deferred && inTime && d.ScheduledTime.Equal(promised.ScheduledTime) {
				require.NotEqual(t, schedule.TooLate, d.Verdict, "seed %d at %v: %+v, it was to start at %v", seed, now, in, promised.RequeueAt)
				require.Equal(t, now.Before(promised.RequeueAt), d.Verdict == schedule.Deferred, "seed %d at %v: %+v", seed, now, in)
			}
			switch promised = d; d.Verdict {
			case schedule.Deferred:
				deferred++
			case schedule.TooLate:
				tooLate[d.TooLateReason()]++
				fallthrough
			case schedule.Start:
				in.LastScheduleTime = new(metav1.NewTime(d.ScheduledTime))
			}
			if d.RequeueAt.IsZero() {
				break
			}
			if now = now.Add(d.RequeueAfter(now)); r.IntN(40) == 0 {
				now = now.Add(time.Duration(r.IntN(5*3600)) * time.Second) // the operator is down
			}
		}
	}
	t.Logf("%d deferred, too late: %v", deferred, tooLate)
	require.Greater(t, deferred, 1000)
	require.Len(t, tooLate, 2, "both reasons occur")
}

func randomPlan(t *testing.T, r *rand.Rand) schedule.Input {
	clockTime := func() string { return fmt.Sprintf("%02d:%02d", r.IntN(24), 10*r.IntN(6)) }
	var windows []schedule.BlackoutWindow
	for range 1 + r.IntN(3) {
		w := schedule.BlackoutWindow{Start: clockTime(), End: clockTime()}
		if w.Start != w.End {
			windows = append(windows, w)
		}
	}
	blackout, err := schedule.ParseBlackoutWindows("UTC", windows...)
	if err != nil { // the windows leave no time open
		return randomPlan(t, r)
	}
	in := schedule.Input{
		Schedule: parsed(t, fmt.Sprintf("%d */%d * * *", r.IntN(60), 1+r.IntN(12)), "UTC"), BlackoutWindows: blackout,
		Since:  new(metav1.NewTime(utc(t, "2026-03-02 00:00"))),
		Offset: time.Duration(r.IntN(2*3600)) * time.Second,
	}
	if r.IntN(4) > 0 {
		in.StartingDeadlineSeconds = new(int64(r.IntN(8 * 3600)))
	}
	return in
}
