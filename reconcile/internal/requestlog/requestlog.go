// Package requestlog keeps the bodies of requests out of logs. client-go logs them, with the passwords in them, with the logger of the
// context.
package requestlog

import (
	"context"

	"github.com/go-logr/logr"
)

// bodies is the lowest level at which client-go logs the bodies of requests and answers: logBody in
// https://github.com/kubernetes/client-go/blob/master/rest/request.go. Everything else is logged at lower levels.
const bodies = 8

// WithoutBodies returns a logger that logs nothing at level 8 and above.
func WithoutBodies(l logr.Logger) logr.Logger {
	if _, is := l.GetSink().(sink); is || l.GetSink() == nil {
		return l
	}
	return l.WithSink(sink{l.GetSink()})
}

// InContext returns a context whose logger logs nothing at level 8 and above.
func InContext(ctx context.Context) context.Context {
	l, err := logr.FromContext(ctx)
	if err != nil || !l.V(bodies).Enabled() {
		return ctx
	}
	return logr.NewContext(ctx, WithoutBodies(l))
}

// sink is the sink of a logger that logs nothing at level 8 and above.
type sink struct{ logr.LogSink }

var _ logr.CallDepthLogSink = sink{}

func (s sink) Enabled(level int) bool { return level < bodies && s.LogSink.Enabled(level) }

func (s sink) WithValues(keysAndValues ...any) logr.LogSink {
	return sink{s.LogSink.WithValues(keysAndValues...)}
}

func (s sink) WithName(name string) logr.LogSink { return sink{s.LogSink.WithName(name)} }

// WithCallDepth implements [logr.CallDepthLogSink].
func (s sink) WithCallDepth(depth int) logr.LogSink {
	if inner, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return sink{inner.WithCallDepth(depth)}
	}
	return s
}
