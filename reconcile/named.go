package reconcile

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NamedStep is a step with what the pass has to know of it. Make it with [Named].
type NamedStep[T client.Object] struct {
	name    string
	step    Step[T]
	cleaner FinalizingStep[T] // nil unless the step is one
	stepOptions
}

// Named gives a step its name, which stands in logs, and before its part of Ready's message when
// several steps have not succeeded and it reports no condition of its own. Names are unique in a
// reconciler.
//
// A step that has a method SetName(string) is told. ownedresources.Ensure notes the name on the
// children: one that stops being wanted in the very release in which its step is renamed stays.
func Named[T client.Object](name string, step Step[T], options ...StepOption) NamedStep[T] {
	n := NamedStep[T]{name: name, step: step}
	for _, o := range options {
		o(&n.stepOptions)
	}
	n.cleaner, _ = step.(FinalizingStep[T])
	if s, ok := step.(interface{ SetName(name string) }); ok {
		s.SetName(name)
	}
	return n
}

// watched gives all kinds that the step declares.
func (n *NamedStep[T]) watched() []client.Object {
	var kinds []client.Object
	if w, ok := n.step.(Watcher); ok {
		kinds = append(kinds, w.Watched()...)
	}
	for _, w := range n.watches {
		kinds = append(kinds, w.object)
	}
	return kinds
}

func (n *NamedStep[T]) setupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder, r client.Reader) error {
	if w, ok := n.step.(Watcher); ok {
		if err := w.SetupWithBuilder(mgr, b); err != nil {
			return fmt.Errorf("watches of step %q: %w", n.name, err)
		}
	}
	for i := range n.watches {
		n.watches[i].setup(b, r)
	}
	return nil
}
