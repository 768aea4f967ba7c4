package schedule_test

import (
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

// FuzzParse proves that no text makes the parser panic or its schedule never come, that String can be parsed again, and that
// in UTC, where no clock is set, the times are robfig's.
func FuzzParse(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, zone string, from int64) {
		s, err := schedule.Parse(text, zone)
		if err != nil {
			require.ErrorIs(t, err, schedule.ErrInvalid)
			require.Nil(t, s)
			require.True(t, utf8.ValidString(err.Error()), "a condition's message")
			require.Less(t, len(err.Error()), 2000, "whatever the length of the text")
			return
		}
		again, err := schedule.Parse(s.String(), s.Location().String())
		require.NoError(t, err)
		require.Equal(t, s, again)

		const years = 60 * 60 * 24 * 365
		at := time.Unix(from%(400*years), 0).In(s.Location())
		for range 3 {
			next := s.Next(at)
			require.True(t, next.After(at), "%s in %s: %v, then %v", s, s.Location(), at, next)
			at = next
		}
		compareWithRobfig(t, s.String(), time.Unix(from%(400*years), 0).UTC())
	})
}

func compareWithRobfig(t *testing.T, text string, at time.Time) {
	t.Helper()
	s := parsed(t, text, "UTC")
	robfig, err := cron.ParseStandard(text)
	require.NoError(t, err)
	for range 3 {
		want := robfig.Next(at)
		if want.IsZero() {
			require.True(t, s.Next(at).After(at.AddDate(4, 0, 0)), "robfig looks five years ahead only")
			return
		}
		require.Equal(t, want, s.Next(at), "%s after %v", text, at)
		at = want
	}
}

// FuzzParseWindows proves that windows are refused, or leave a time open within a week.
func FuzzParseWindows(f *testing.F) {
	f.Fuzz(func(t *testing.T, start, end, day, otherStart, otherEnd, zone string, from int64) {
		w, err := schedule.ParseBlackoutWindows(zone,
			schedule.BlackoutWindow{Start: start, End: end, Days: []string{day}}, schedule.BlackoutWindow{Start: otherStart, End: otherEnd})
		if err != nil {
			require.True(t, errors.Is(err, schedule.ErrInvalid) && utf8.ValidString(err.Error()) && len(err.Error()) < 2000)
			return
		}
		at := time.Unix(from%(1<<34), 0)
		open := w.Open(at)
		require.False(t, open.Before(at))
		require.Less(t, open.Sub(at), 9*24*time.Hour)
		require.Equal(t, open, w.Open(open))
	})
}
