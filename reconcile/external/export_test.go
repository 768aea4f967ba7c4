package external

import "github.com/prometheus/client_golang/prometheus"

// Remembered returns the number of objects in memory.
func (s *Step[T, S]) Remembered() int { return len(s.synced.byName) }

// Abandoned returns the number of calls that have not returned.
func (s *Step[T, S]) Abandoned() int { return s.calls.NotReturned() }

// Measure registers the metrics in a registry of the test.
func (s *Step[T, S]) Measure(registry prometheus.Registerer) error { return s.calls.Measure(registry) }
