package servedkinds

import (
	"math/rand/v2"
	"time"
)

// defaultPeriod is how often discovery is read if nothing happens. A random delay of up to a tenth of the period is added.
const defaultPeriod = time.Minute

// quickDelays are the delays between the checks after an event. Together they take 13 seconds: an API server serves a kind shortly after
// its definition is established, and several API servers do so at different times.
var quickDelays = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
	1600 * time.Millisecond, 3200 * time.Millisecond, 6400 * time.Millisecond,
}

// schedule says when a group and version is checked next. The zero value is due at once.
type schedule struct {
	next    time.Time
	quick   int  // number of quick checks that are still to be made
	failing bool // the last check has failed
}

// burst makes the next check due at once. The quick checks follow.
func (s *schedule) burst(now time.Time) { s.next, s.quick = now, len(quickDelays) }

// within makes the next check due after this delay at the latest.
func (s *schedule) within(delay time.Duration, now time.Time) {
	if at := now.Add(delay); at.Before(s.next) {
		s.next = at
	}
}

// checked schedules the next check after one was made: after a quick delay if quick checks are left, and otherwise after the period.
func (s *schedule) checked(now time.Time, period time.Duration) {
	if s.quick > 0 {
		s.next = now.Add(quickDelays[len(quickDelays)-s.quick])
		s.quick--
		return
	}
	s.next = now.Add(period + rand.N(period/10)) //nolint:gosec // the jitter keeps no secret
}
