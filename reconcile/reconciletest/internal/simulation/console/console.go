// Package console keeps an operator from filling the console while it is explored. An exploration has thousands of processes. If the
// operator logs by controller-runtime's global logger, it would print megabytes before the report.
//
// When the package is imported, it replaces the variable Log of controller-runtime by a logger that passes each line to the former logger.
// During an exploration that asks for it, the new logger drops the lines. The variable is replaced at import, when no goroutine reads it
// yet. It could not be replaced later: once [log.SetLogger] has set a logger, that cannot be changed. A logger that was derived from the
// variable earlier is not affected.
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

var quiet atomic.Int32 // the number of callers of Quieten that have not called release

// Quieten drops what is logged by controller-runtime's global logger, and by loggers derived from it, until release is called.
func Quieten() (release func()) {
	quiet.Add(1)
	return func() { quiet.Add(-1) }
}

// sink passes lines to another sink, unless lines are dropped.
type sink struct{ logr.LogSink }

// Enabled reports whether lines of a level are passed on. Package logr asks it before each line, except for errors.
func (s sink) Enabled(level int) bool { return quiet.Load() == 0 && s.LogSink.Enabled(level) }

// Error passes on an error, unless lines are dropped.
func (s sink) Error(err error, message string, values ...any) {
	if quiet.Load() == 0 {
		s.deeper(1).LogSink.Error(err, message, values...)
	}
}

// WithName returns the sink with a name added.
func (s sink) WithName(name string) logr.LogSink { return sink{s.LogSink.WithName(name)} }

// WithValues returns the sink with values added.
func (s sink) WithValues(values ...any) logr.LogSink { return sink{s.LogSink.WithValues(values...)} }

// WithCallDepth returns a sink that skips more frames of the stack to find the line that logs.
func (s sink) WithCallDepth(depth int) logr.LogSink { return s.deeper(depth) }

func (s sink) deeper(depth int) sink {
	if of, counts := s.LogSink.(logr.CallDepthLogSink); counts {
		return sink{of.WithCallDepth(depth)}
	}
	return s
}
