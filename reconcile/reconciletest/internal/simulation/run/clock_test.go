package run

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// TestClock has a run without faults whose action begins after a minute and waits for an hour. Other runs follow its times.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		without := clock{moments: result.Moments{}}
		assert.Zero(t, without.early(1), "it follows no other run")
		time.Sleep(time.Minute)
		without.begin(1)
		assert.Equal(t, time.Hour, without.wait(1, time.Hour))
		assert.Equal(t, result.Moment{Begun: start.Add(time.Minute), Over: start.Add(time.Minute + time.Hour)}, without.moments[1])

		late := clock{without: without.moments, moments: result.Moments{}}
		time.Sleep(time.Minute)
		assert.Equal(t, -time.Minute, late.early(1), "a fault has made it later")
		late.begin(1)
		assert.Equal(t, time.Hour-time.Minute, late.wait(1, time.Hour), "the wait ends as without faults")
		time.Sleep(time.Hour)
		assert.Zero(t, late.wait(1, time.Hour), "another wait would give a schedule one time more")
	})
}
