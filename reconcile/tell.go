package reconcile

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/eventnote"
	"github.com/opblocks/opblocks/internal/passcontext"
)

// Eventf emits an event from a step: that for a reason, in CamelCase, something was done to the
// object about, be it the pass's own or another one. Nothing is emitted without a manager.
// An event is a request: tell what happened once, and not what is so.
func Eventf(ctx context.Context, about client.Object, eventType, reason, format string, args ...any) {
	if p, ok := passcontext.FromContext(ctx).(interface {
		tell(about client.Object, eventType, reason, note string)
	}); ok {
		p.tell(about, eventType, reason, fmt.Sprintf(format, args...))
	}
}

func (p *pass[T]) tell(about client.Object, eventType, reason, note string) {
	if p.recorder == nil {
		return
	}
	var related client.Object
	if !p.owns(about) {
		related = p.before
	}
	p.recorder.Eventf(about, related, eventType, reason, camelCase(p.steps[p.running].name), "%s", eventnote.Cut(note))
}

// WithRecorder lets a test see the events. Otherwise they are the manager's. Call it before the first pass.
func (r *Reconciler[T]) WithRecorder(recorder events.EventRecorder) *Reconciler[T] {
	r.recorder = recorder
	return r
}
