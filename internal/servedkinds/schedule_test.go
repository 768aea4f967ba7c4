package servedkinds

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestSchedule(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	var s schedule
	assert.False(t, s.next.After(now), "a new one is due at once")
	for range 100 {
		s.checked(now, time.Minute)
		assert.GreaterOrEqual(t, s.next.Sub(now), time.Minute)
		assert.LessOrEqual(t, s.next.Sub(now), 66*time.Second, "all operators of a cluster do not ask at the same time")
	}

	s.burst(now)
	assert.Equal(t, now, s.next, "an event is followed at once")
	var delays []time.Duration
	for range len(quickDelays) {
		s.checked(now, time.Minute)
		delays = append(delays, s.next.Sub(now))
	}
	assert.Equal(t, quickDelays, delays)
	s.checked(now, time.Minute)
	assert.GreaterOrEqual(t, s.next.Sub(now), time.Minute, "the quick checks end")

	s.within(10*time.Second, now)
	assert.Equal(t, now.Add(10*time.Second), s.next)
	s.within(20*time.Second, now)
	assert.Equal(t, now.Add(10*time.Second), s.next, "an earlier check stays")
}
