package external

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
)

// Remembered returns how many objects the step remembers.
func (s *Step[T, S]) Remembered() int { return len(s.synced.byName) }

// Abandoned returns how many calls have not returned although their context has ended.
func (s *Step[T, S]) Abandoned() int { return s.calls.NotReturned() }

// Measure registers the metrics in a registry of the test.
func (s *Step[T, S]) Measure(registry prometheus.Registerer) error { return s.calls.Measure(registry) }

// Occupy begins a pass of another object that calls the server. The pass ends when the test calls leave.
func (s *Step[T, S]) Occupy(obj T) (leave func()) {
	entered, end, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = s.calls.Visit(obj, s.server(obj)).Do(context.Background(), func(context.Context) error { close(entered); <-end; return nil })
	}()
	<-entered
	return func() { close(end); <-done }
}
