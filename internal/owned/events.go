package owned

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/opblocks/opblocks/internal/eventnote"
)

// Outcome is what was done to an object. It is the reason of an event and, in lower case, a label of the metric
// opblocks_applies_total.
type Outcome string

// DoneEvent collects what the one event about all objects with the same outcome says.
type DoneEvent struct {
	Related *corev1.ObjectReference // the first of the objects
	Texts   []string
}

// Action returns the action of events about the children of the owner: the name of their step in CamelCase.
func (o *Owner) Action() string { return eventnote.CamelCase(o.Set) }
