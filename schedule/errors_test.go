package schedule_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/schedule"
)

func TestError(t *testing.T) {
	week := []schedule.BlackoutWindow{{Start: "00:00", End: "24:00"}}
	typo := []schedule.BlackoutWindow{{Start: "8", End: "09:00"}}
	type want struct{ Field, Reason string }
	cases := map[string]struct {
		reason   string
		schedule string
		options  schedule.Options
		want     want
	}{
		"Schedule": {"The schedule is invalid.", "TZ=UTC", schedule.Options{}, want{"schedule", "InvalidSchedule"}},
		"TimeZone": {"The time zone is invalid.", "@daily", schedule.Options{TimeZone: "Mars/Olympus"}, want{"timeZone", "InvalidTimeZone"}},
		"BlackoutWindows": {
			"The windows together are invalid.", "@daily", schedule.Options{BlackoutWindows: week},
			want{"blackoutWindows", "InvalidBlackoutWindows"},
		},
		"FieldOfAWindow": {
			"Field is the whole path, and Reason names the top-level field.", "@daily", schedule.Options{BlackoutWindows: typo},
			want{"blackoutWindows[0].start", "InvalidBlackoutWindows"},
		},
		"StartingDeadlineSeconds": {
			"The deadline is invalid.", "@daily", schedule.Options{StartingDeadlineSeconds: new(int64(-1))},
			want{"startingDeadlineSeconds", "InvalidStartingDeadlineSeconds"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var s schedule.Status
			_, err := s.Decide(utc(t, "2026-03-01 12:00"), "uid", tc.schedule, tc.options)
			invalid, ok := errors.AsType[*schedule.Error](err)
			require.True(t, ok, tc.reason)
			if diff := cmp.Diff(tc.want, want{invalid.Field, invalid.Reason()}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
