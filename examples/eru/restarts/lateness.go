package restarts

import "github.com/prometheus/client_golang/prometheus"

// NewLateness returns the metric for [Restarts.Lateness]. The caller registers it.
func NewLateness() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "eru_restart_lateness_seconds", Help: "How many seconds after its place in the spread a restart starts.",
		Buckets: prometheus.ExponentialBuckets(0.01, 4, 10), // 10 ms to 44 minutes
	})
}
