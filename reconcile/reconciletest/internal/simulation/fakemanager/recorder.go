package fakemanager

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// EventRecorder has the methods that GetEventRecorder's results have in any version of controller-runtime: events.EventRecorder in v0.24, and
// recorder.EventRecorder since.
type EventRecorder interface {
	events.EventRecorder
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any)
}

// AsManager returns the Manager for the operator, with the event recorder of the options. Equal values are returned by each call.
func (m *Manager) AsManager() manager.Manager {
	return withRecorder(m, manager.Manager.GetEventRecorder)
}

// recordingManager is a Manager whose recorders have the type R.
type recordingManager[R any] struct {
	*Manager
	recorder R
}

// GetEventRecorder returns the recorder of the options.
func (m recordingManager[R]) GetEventRecorder(string) R { return m.recorder }

// withRecorder infers R from a method expression, since R has another name in each version of controller-runtime. A test proves that
// the result has all methods of a manager.
func withRecorder[R any](m *Manager, _ func(manager.Manager, string) R) manager.Manager {
	return any(recordingManager[R]{m, any(m.options.EventRecorder).(R)}).(manager.Manager)
}
