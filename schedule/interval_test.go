package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

func TestCheckInterval(t *testing.T) {
	const day = 24 * time.Hour
	for text, shortest := range map[string]time.Duration{
		"@every 1s":             time.Second,
		"@every 90m":            90 * time.Minute,
		"* * * * *":             time.Minute,
		"*/5 * * * *":           5 * time.Minute,
		"5,20,24 3 * * *":       4 * time.Minute,
		"*/45 * * * *":          15 * time.Minute, // 00:45 and 01:00
		"10 * * * *":            time.Hour,
		"10,50 */2 * * *":       40 * time.Minute,
		"0 0,23 * * *":          time.Hour,
		"0 0,23 * * MON":        23 * time.Hour, // no two Mondays follow each other
		"0 0,23 * * MON,TUE":    time.Hour,
		"30 4 * * *":            day,
		"30 4 * * MON,THU":      3 * day,
		"@weekly":               7 * day,
		"@monthly":              28 * day,
		"0 0 1,31 * *":          day,
		"0 12 29 2 *":           4*365*day + day,
		"@yearly":               365 * day,
		"0 0 13 * FRI":          day, // Thursday, the 13th
		"59 23 31 12 *":         365 * day,
		"0,59 0,23 31,1 12,1 *": time.Minute, // 23:59 on December 31st, 00:00 on January 1st
	} {
		require.NoError(t, schedule.CheckInterval(text, shortest), text)
		err := schedule.CheckInterval(text, shortest+1)
		require.ErrorAs(t, err, new(*schedule.Error), text)
		require.NoError(t, schedule.CheckInterval(text, 0), text)
	}

	err := schedule.CheckInterval("@every 1s", time.Minute)
	require.EqualError(t, err, `invalid schedule "@every 1s": its shortest interval is 1s, and at least 1m0s is allowed; write a longer interval, such as @every 1m0s`)
	invalid := &schedule.Error{}
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "InvalidSchedule", invalid.Reason())
	require.ErrorContains(t, schedule.CheckInterval("* * *", time.Minute), "it has 3 fields")
}

// In UTC, clocks are never set. So the interval is the shortest distance between two times that Next returns.
func TestCheckIntervalAgainstNext(t *testing.T) {
	for _, text := range []string{"7,31 */5 * * *", "0 22,1 */3 * *", "15 3 */10 * *", "0 6 1-7 * MON", "58 23 28 2 *", "3 4 * 2,3 SUN", "1-9/4 8-20/6 * * 1-5/2"} {
		s := parsed(t, text, "UTC")
		shortest := 100 * 365 * 24 * time.Hour
		for at, end := utc(t, "2000-01-01 00:00"), utc(t, "2028-03-01 00:00"); at.Before(end); {
			next := s.Next(at)
			if at.After(utc(t, "2000-01-01 00:00")) {
				shortest = min(shortest, next.Sub(at))
			}
			at = next
		}
		require.NoError(t, schedule.CheckInterval(text, shortest), text)
		require.Error(t, schedule.CheckInterval(text, shortest+1), "%s: %v", text, shortest)
	}
}
