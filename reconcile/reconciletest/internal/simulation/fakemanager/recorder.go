package fakemanager

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// EventRecorder has the methods of an event recorder in every version of controller-runtime. In v0.24 GetEventRecorder returns an
// events.EventRecorder, and in later versions a recorder.EventRecorder.
type EventRecorder interface {
	events.EventRecorder
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventType, reason, action, note string, args ...any)
}

// AsManager returns the Manager as a manager.Manager for the operator, with the event recorder of the options. The results of all calls are
// equal.
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

// withRecorder adds the method GetEventRecorder to m. It infers the result type R from a method expression, since R differs between
// versions of controller-runtime. A test proves that the result has all methods of a manager.
func withRecorder[R any](m *Manager, _ func(manager.Manager, string) R) manager.Manager {
	return any(recordingManager[R]{m, any(m.options.EventRecorder).(R)}).(manager.Manager)
}
