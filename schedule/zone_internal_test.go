package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFindPeriod proves that findPeriod finds a period that contains the time and has one UTC offset, and that the
// next period follows without a gap. Go's ZoneBounds does not guarantee that.
func TestFindPeriod(t *testing.T) {
	begin, end := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut", "Africa/Casablanca",
		"Antarctica/Troll", "Pacific/Apia", "Africa/Cairo", "America/Asuncion", "Asia/Gaza", "Europe/Dublin", "America/Nuuk",
	} {
		location, err := loadTimeZone(name)
		require.NoError(t, err)
		for at := begin; at.Before(end); at = at.Add(121 * time.Hour) {
			z, sec := zonedCalendar{location: location}, at.Unix()
			z.findPeriod(sec)
			for _, t1 := range []int64{sec, max(z.start, begin.Unix()), min(z.end, end.Unix()) - 1} {
				_, offset := time.Unix(t1, 0).In(location).Zone()
				if z.start > sec || z.end <= sec || z.offset != int64(offset) {
					t.Fatalf("%s at %v: %+v has %d at %v", name, at, z, offset, time.Unix(t1, 0).UTC())
				}
			}
			if z.end > end.Unix() {
				continue
			}
			next := z
			next.findPeriod(z.end)
			if next.start > z.end {
				t.Fatalf("%s at %v: %+v, then %+v", name, at, z, next)
			}
		}
	}
}
