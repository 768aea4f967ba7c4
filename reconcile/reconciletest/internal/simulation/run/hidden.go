package run

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// checkHidden returns an error if a pass with nothing to do read an object by its name in the cache, which does not hold the object
// because of its options, although the object exists. An operator that then reads the object past the cache in the same pass knows of
// that. The object of the pass itself does not count: after it has left the cache, a pass finds out.
func (c *restCheck) checkHidden() error {
	type read struct {
		pass   int
		object request.ObjectID
	}
	past := map[read]bool{}
	probes := c.Log.ProbesSince(c.pass)
	for _, probe := range probes {
		if probe.Verb == "get" && !probe.Cached {
			past[read{probe.Pass, request.ObjectID{Kind: probe.Kind, Name: probe.Object}}] = true
		}
	}
	c.Mu.Lock()
	defer c.Mu.Unlock()
	for _, probe := range probes {
		id := request.ObjectID{Kind: probe.Kind, Name: probe.Object}
		obj := c.History.Present[id]
		if c.Passes.Over(probe.Pass).Request.NamespacedName == probe.Object {
			continue
		}
		if probe.Verb == "get" && probe.Cached && apierrors.IsNotFound(probe.Err) && obj != nil && c.Hides(obj) && !past[read{probe.Pass, id}] {
			return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("the operator's cache hides %s %s: a pass did not find the object, which exists, since the cache's selector or namespaces leave it out\n"+
				"Widen the cache, or give the object the labels that the selector asks for", probe.Kind.Kind, state.NameOf(probe.Object))}
		}
	}
	return nil
}
