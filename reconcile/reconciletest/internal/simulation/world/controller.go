package world

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// controller is a simulated controller. If a step has changed nothing, the next step is taken only after a change on which it may depend: a
// change of an object whose kind the step has read or written, of the clock, or of something outside of the cluster.
type controller struct {
	server    *memoryserver.Server
	reconcile func(ctx context.Context, c client.Client) error
	client    client.Client  // a client that adds the kinds of its requests to asked
	rested    request.Moment // the moment of the last step if it changed nothing; otherwise the zero value

	mu    sync.Mutex                           // guards asked: a step may have goroutines
	asked map[schema.GroupVersionKind]struct{} // the kinds that the last step has read or written
}

func newController(w *World, reconcile func(context.Context, client.Client) error) *controller {
	c := &controller{server: w.Server, reconcile: reconcile}
	c.client = w.Server.NotingClient(func(gvk schema.GroupVersionKind) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked[gvk] = struct{}{}
	})
	return c
}

// step takes a step, unless it would change nothing. now is the moment of the step.
func (c *controller) step(now request.Moment) error {
	if c.rests(now) {
		return nil
	}
	c.asked = map[schema.GroupVersionKind]struct{}{corev1.SchemeGroupVersion.WithKind("Namespace"): {}} // creations depend on the namespace
	c.rested = request.Moment{}
	if err := c.reconcile(context.Background(), c.client); err != nil {
		return err
	}
	if c.server.Revision() == now.Revision {
		c.rested = now
	}
	return nil
}

// rests reports whether the next step would change nothing: nothing on which it may depend has changed since a step that changed nothing.
func (c *controller) rests(now request.Moment) bool {
	last := c.rested
	last.Revision = now.Revision
	return !c.rested.Time.IsZero() && last == now && !slices.ContainsFunc(c.server.Changes(c.rested.Revision), func(change memoryserver.Change) bool {
		_, asked := c.asked[change.GVK]
		return asked
	})
}
