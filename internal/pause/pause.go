// Package pause reads the annotation by which people pause the reconciling of an object.
package pause

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotation pauses an object: its value is "true", or the time until when, as RFC 3339. "false" is the
// same as no annotation; any other value pauses, since whoever wrote it did not want things to go on.
const Annotation = "opblocks.dev/paused"

// State is what the annotation says; it can be compared.
type State struct {
	Paused bool
	Until  time.Time // UTC; zero when the pause has no end
}

// Of gives what obj's annotation says, whatever the time is.
func Of(obj client.Object) State {
	value, ok := obj.GetAnnotations()[Annotation]
	if !ok || value == "false" {
		return State{}
	}
	until, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return State{Paused: true}
	}
	return State{Paused: true, Until: until.UTC()}
}

// At gives the state at a time: a pause that is over is none.
func (s State) At(now time.Time) State {
	if !s.Until.IsZero() && !now.Before(s.Until) {
		return State{}
	}
	return s
}
