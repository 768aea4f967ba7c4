package writeloop

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestDelay(t *testing.T) {
	for writes, want := range map[int]time.Duration{
		1: 0, Free: 0,
		Free + 1: MinDelay,
		Free + 2: 2 * MinDelay,
		Free + 3: 4 * MinDelay,
		1000:     MaxDelay,
	} {
		require.Equal(t, want, (&Loop{writes: writes}).Delay(), "after %d writes", writes)
	}
}

func TestWait(t *testing.T) {
	now, metric, loop := time.Unix(0, 0), NewMetric(), &Loop{}
	wait := func() (time.Duration, bool) { return loop.Wait(now, metric, "ConfigMap", "shop", "web", "data") }
	for range Free + 1 {
		after, begins := wait()
		require.Zero(t, after, "the first writes are made at once")
		require.False(t, begins)
		loop.Count(now)
	}
	after, begins := wait()
	require.Equal(t, MinDelay, after)
	require.True(t, begins)
	require.Equal(t, 1, count(metric))
	now = now.Add(time.Second)
	after, begins = wait()
	require.Equal(t, MinDelay-time.Second, after)
	require.False(t, begins, "it begins once")
	now = now.Add(MinDelay)
	after, _ = wait()
	require.Zero(t, after)
	require.False(t, loop.HasEnded(now))
	require.True(t, loop.HasEnded(now.Add(Gap)))
	loop.End(metric)
	require.Zero(t, count(metric))
}

func count(metric *prometheus.GaugeVec) int {
	series := make(chan prometheus.Metric, 10)
	metric.Collect(series)
	return len(series)
}
