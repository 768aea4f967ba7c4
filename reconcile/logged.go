package reconcile

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// logged remembers what was last logged of a step that does not succeed, so that the same error
// is not logged again with every pass: the conditions show it.
type logged struct{ messages sync.Map } // loggedStep → string

type loggedStep struct {
	object types.NamespacedName
	step   string
}

// isNew reports whether the message differs from the last one.
func (l *logged) isNew(object types.NamespacedName, step, message string) bool {
	last, known := l.messages.Swap(loggedStep{object, step}, message)
	return !known || last != message
}

// forget is for a step that has succeeded, or an object that is gone.
func (l *logged) forget(object types.NamespacedName, step string) {
	l.messages.Delete(loggedStep{object, step})
}
