package run

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/failure"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// checkHidden returns an error if a pass with nothing to do reads an object by its name in the cache and does not find it, although the
// object exists and only the options of the cache leave it out. If the pass also reads the object from the API server, it returns nil: the
// operator knows that the cache lacks it. The object that is reconciled does not count: when the cache drops it, a pass has to find that
// out.
func (p *probes) checkHidden() error {
	type read struct {
		pass   int
		object request.ObjectID
	}
	past := map[read]bool{}
	calls := p.calls()
	for _, probe := range calls {
		if probe.Verb == "get" && !probe.Cached {
			past[read{probe.Pass, request.ObjectID{Kind: probe.Kind, Name: probe.Object}}] = true
		}
	}
	p.world.Mu.Lock()
	defer p.world.Mu.Unlock()
	for _, probe := range calls {
		id := request.ObjectID{Kind: probe.Kind, Name: probe.Object}
		obj := p.world.History.Present[id]
		if p.operator.Passes.Over(probe.Pass).Request.NamespacedName == probe.Object {
			continue
		}
		if probe.Verb == "get" && probe.Cached && apierrors.IsNotFound(probe.Err) && obj != nil && p.operator.Hides(obj) && !past[read{probe.Pass, id}] {
			return failure.Finding{Kind: kinds.DoesNotRest, Err: fmt.Errorf("the operator's cache hides %s %s: a pass did not find the object, which exists, since the cache's selector or namespaces leave it out\n"+
				"Widen the cache, or give the object the labels that the selector asks for", probe.Kind.Kind, state.NameOf(probe.Object))}
		}
	}
	return nil
}
