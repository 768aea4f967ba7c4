package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever Go says of a period, it holds the time that was looked for, all of it has one offset, and the next one follows.
func TestPeriodsAreWhatTheyAre(t *testing.T) {
	begin, end := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2110, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Beirut", "Africa/Casablanca",
		"Antarctica/Troll", "Pacific/Apia", "Africa/Cairo", "America/Asuncion", "Asia/Gaza", "Europe/Dublin", "America/Nuuk",
	} {
		location, err := loadZone(name)
		require.NoError(t, err)
		for at := begin; at.Before(end); at = at.Add(121 * time.Hour) {
			l, sec := local{location: location}, at.Unix()
			l.look(sec)
			for _, t1 := range []int64{sec, max(l.start, begin.Unix()), min(l.end, end.Unix()) - 1} {
				_, offset := time.Unix(t1, 0).In(location).Zone()
				if l.start > sec || l.end <= sec || l.offset != int64(offset) {
					t.Fatalf("%s at %v: %+v has %d at %v", name, at, l, offset, time.Unix(t1, 0).UTC())
				}
			}
			if l.end > end.Unix() {
				continue
			}
			following := l
			following.look(l.end)
			if following.start > l.end {
				t.Fatalf("%s at %v: %+v, then %+v", name, at, l, following)
			}
		}
	}
}
