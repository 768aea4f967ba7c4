// Package console keeps an operator that is explored from filling the console: an exploration has thousands of processes, and an operator
// that logs by controller-runtime's global logger would print megabytes before the report.
//
// When it is imported, it replaces the variable Log of controller-runtime by a logger that hands each line on. While an exploration asks
// for it, that logger drops the lines. The variable is replaced at import, since no goroutine reads it yet. Later one might, and the
// logger that [log.SetLogger] has set once cannot be replaced. A logger that was derived from the variable before stays as it is.
package console

import (
	"sync/atomic"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func init() {
	log.Log = logr.New(sink{log.Log.GetSink()})
	ctrl.Log = log.Log
}

var quiet atomic.Int32 // how many explorations ask for it

// Quieten drops what is logged by controller-runtime's global logger, and by loggers derived from it, until release is called.
func Quieten() (release func()) {
	quiet.Add(1)
	return func() { quiet.Add(-1) }
}

// sink hands lines on to another sink, unless the console is quiet.
type sink struct{ logr.LogSink }

// Enabled reports whether lines of a level are handed on. Package logr asks it before each line, except for errors.
func (s sink) Enabled(level int) bool { return quiet.Load() == 0 && s.LogSink.Enabled(level) }

// Error hands on an error.
func (s sink) Error(err error, message string, values ...any) {
	if quiet.Load() == 0 {
		s.deeper(1).LogSink.Error(err, message, values...)
	}
}

// WithName returns the sink with a name added.
func (s sink) WithName(name string) logr.LogSink { return sink{s.LogSink.WithName(name)} }

// WithValues returns the sink with values added.
func (s sink) WithValues(values ...any) logr.LogSink { return sink{s.LogSink.WithValues(values...)} }

// WithCallDepth returns the sink with frames left out between the line that logs and the sink.
func (s sink) WithCallDepth(depth int) logr.LogSink { return s.deeper(depth) }

func (s sink) deeper(depth int) sink {
	if of, counts := s.LogSink.(logr.CallDepthLogSink); counts {
		return sink{of.WithCallDepth(depth)}
	}
	return s
}
