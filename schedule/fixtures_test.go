package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/schedule"
)

// dated is the layout in which tests write local times. clock is the layout in which they compare times.
const (
	dated = "2006-01-02 15:04"
	clock = "Mon 2006-01-02 15:04 MST"
)

func parsed(t testing.TB, text, zone string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(text, zone)
	require.NoError(t, err)
	return s
}

// on parses a date, with minutes or seconds, in a time zone.
func on(t testing.TB, date, zone string) time.Time {
	t.Helper()
	location, err := time.LoadLocation(zone)
	require.NoError(t, err)
	layout := dated
	if strings.Count(date, ":") == 2 {
		layout += ":05"
	}
	at, err := time.ParseInLocation(layout, date, location)
	require.NoError(t, err)
	return at
}

func utc(t testing.TB, date string) time.Time { t.Helper(); return on(t, date, "UTC") }

// next returns the first count times after a date.
func next(t testing.TB, times times, from time.Time, count int) (got []string) {
	t.Helper()
	for range count {
		from = times.Next(from)
		got = append(got, from.Format(clock))
	}
	return got
}

type nextCase struct {
	reason   string
	schedule string
	zone     string
	from     string
	want     []string
}

func runNext(t *testing.T, cases map[string]nextCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := parsed(t, tc.schedule, tc.zone)
			if diff := cmp.Diff(tc.want, next(t, s, on(t, tc.from, tc.zone), len(tc.want))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func at(t testing.TB, date string) *metav1.Time {
	t.Helper()
	if date == "" {
		return nil
	}
	return new(metav1.NewTime(utc(t, date)))
}

// shown is a decision in the form in which the test tables write it.
type shown struct {
	Verdict                        schedule.Verdict
	ScheduledTime, Next, RequeueAt string
	Missed                         int
}

func show(d schedule.Decision) shown {
	format := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(dated + ":05")
	}
	return shown{d.Verdict, format(d.ScheduledTime), format(d.Next), format(d.RequeueAt), d.Missed}
}

func windows(t testing.TB, zone string, w ...schedule.BlackoutWindow) schedule.BlackoutWindows {
	t.Helper()
	parsed, err := schedule.ParseBlackoutWindows(zone, w...)
	require.NoError(t, err)
	return parsed
}

func waits(name string, due time.Time) schedule.Candidate {
	return schedule.Candidate{Object: types.NamespacedName{Namespace: "shop", Name: name}, Due: due}
}

func runs(name string) schedule.Candidate {
	return schedule.Candidate{Object: types.NamespacedName{Namespace: "shop", Name: name}, Running: true}
}

// admitted returns the names of the waiting candidates that MayStart allows to start.
func admitted(limit int, all []schedule.Candidate) (names []string) {
	for _, c := range all {
		if !c.Running && c.MayStart(limit, slices.Values(all)) {
			names = append(names, c.Object.Name)
		}
	}
	slices.Sort(names)
	return names
}

// uid returns a UID in the format of the API server.
func uid(i int) types.UID {
	return types.UID(fmt.Sprintf("%08x-5c1d-4f5e-9d7a-3b2a%08x", uint32(i)*2654435761, i))
}

// times is a schedule of any type.
type times interface {
	Next(t time.Time) time.Time
}

// counting is a schedule that counts the calls of Next.
type counting struct {
	times
	calls *int
}

func (c counting) Next(t time.Time) time.Time {
	*c.calls++
	return c.times.Next(t)
}

type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

type stuck struct{}

func (stuck) Next(t time.Time) time.Time { return t }

// once is a schedule that has only these times. They need not be whole seconds.
type once []time.Time

func (o once) Next(t time.Time) time.Time {
	for _, at := range o {
		if at.After(t) {
			return at
		}
	}
	return time.Time{}
}
