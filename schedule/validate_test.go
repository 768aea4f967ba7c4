package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/opblocks/opblocks/schedule"
)

func TestValidate(t *testing.T) {
	windows := func(windows ...schedule.BlackoutWindow) schedule.Options {
		return schedule.Options{BlackoutWindows: windows}
	}
	cases := map[string]struct {
		reason   string
		schedule string
		options  schedule.Options
		least    time.Duration
		want     []string
	}{
		"Valid": {
			"Nothing is wrong.", "30 4 * * *",
			schedule.Options{TimeZone: "Europe/Berlin", StartingDeadlineSeconds: new(int64(0)), BlackoutWindows: []schedule.BlackoutWindow{{Start: "08:00", End: "18:00", Days: []string{"Mon"}}}},
			time.Minute, nil,
		},
		"All": {
			"Each field has its error, and each window its first.", "hourly",
			schedule.Options{TimeZone: "Mars", StartingDeadlineSeconds: new(int64(-1)), BlackoutWindows: []schedule.BlackoutWindow{
				{Start: "8", End: "9"}, {Start: "08:00", End: "18:00"}, {Start: "08:00", End: "08:00"}, {Start: "08:00", End: "18:00", Days: []string{"Mon", "Lundi"}},
			}},
			time.Minute,
			[]string{
				`spec.schedule: Invalid value: "hourly": it has 1 fields; write five: minute, hour, day of month, month, day of week`,
				`spec.timeZone: Invalid value: "Mars": there is no such zone; write a name of the IANA database, such as "Europe/Berlin" or "UTC"`,
				`spec.startingDeadlineSeconds: Invalid value: -1: it is negative; write 0 or more, or leave it out for no limit`,
				`spec.blackoutWindows[0].start: Invalid value: "8": it is not a time of day; write HH:MM, from 00:00 to 23:59`,
				`spec.blackoutWindows[2].end: Invalid value: "08:00": it equals start; for a whole day write 00:00 and 24:00`,
				`spec.blackoutWindows[3].days[1]: Invalid value: "Lundi": it is not a day; write Mon, Tue, Wed, Thu, Fri, Sat or Sun`,
			},
		},
		"WholeWeek": {
			"The windows are invalid together, and no single value is to blame.", "@daily",
			windows(schedule.BlackoutWindow{Start: "00:00", End: "12:00"}, schedule.BlackoutWindow{Start: "12:00", End: "24:00"}), 0,
			[]string{`spec.blackoutWindows: Invalid value: they cover the whole week, so nothing would ever start; leave some time open`},
		},
		"WholeWeekBesideAnError": {
			"What they cover is known when each is valid.", "@daily",
			windows(schedule.BlackoutWindow{Start: "00:00", End: "24:00"}, schedule.BlackoutWindow{Start: "x", End: "24:00"}), 0,
			[]string{`spec.blackoutWindows[1].start: Invalid value: "x": it is not a time of day; write HH:MM, from 00:00 to 23:59`},
		},
		"Interval": {
			"The operator allows no shorter one.", "@every 59s", schedule.Options{}, time.Minute,
			[]string{`spec.schedule: Invalid value: "@every 59s": its shortest interval is 59s, and at least 1m0s is allowed; write a longer interval, such as @every 1m0s`},
		},
		"NoLimit": {"Any interval is allowed.", "@every 1s", schedule.Options{}, 0, nil},
		"Long": {
			"The message stays readable.", strings.Repeat("1", 513), schedule.Options{}, 0,
			[]string{`spec.schedule: Invalid value: "` + strings.Repeat("1", 60) + `": it has 513 characters; write at most 512`},
		},
		"Empty": {
			"The caller knows its default, if it has one.", "", schedule.Options{}, 0,
			[]string{`spec.schedule: Invalid value: "": it is empty; write five fields, such as "0 4 * * *", or @daily`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range schedule.Validate(tc.schedule, tc.options, tc.least, field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if _, err := new(schedule.Status).Decide(utc(t, "2026-03-01 12:00"), "uid", tc.schedule, tc.options); err != nil && got == nil {
				t.Errorf("Decide refuses what is valid: %v", err)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	cases := map[string]struct {
		reason   string
		deadline *int64
		want     []string
	}{
		"Unset":    {"There is no limit.", nil, nil},
		"Long":     {"An operator is rarely busy for so long.", new(int64(10)), nil},
		"Short":    {"An operator may be busy for so long.", new(int64(9)), []string{"spec.startingDeadlineSeconds: runs are lost while the operator is busy for 9 s; write 10 or more"}},
		"Zero":     {"Each run that is not started at once is lost.", new(int64(0)), []string{"spec.startingDeadlineSeconds: runs are lost while the operator is busy for 0 s; write 10 or more"}},
		"Negative": {"It is an error.", new(int64(-1)), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := schedule.Warnings(schedule.Options{StartingDeadlineSeconds: tc.deadline}, field.NewPath("spec"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
