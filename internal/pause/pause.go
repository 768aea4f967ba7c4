// Package pause reads the annotation by which people pause the reconciling of an object.
package pause

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotation pauses an object. Its value is "true", or the time when the pause ends, as RFC 3339. "false" means the same as
// no annotation. Any other value pauses too, since whoever wrote it wanted the object to be left alone.
const Annotation = "opblocks.dev/paused"

// State is what the annotation of an object says. It is comparable.
type State struct {
	Paused bool
	Until  time.Time // in UTC; zero if the pause has no end
}

// Of returns what the annotation of obj says, regardless of the time.
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

// At returns the state at a time: not paused, if the pause is over by then.
func (s State) At(now time.Time) State {
	if !s.Until.IsZero() && !now.Before(s.Until) {
		return State{}
	}
	return s
}
