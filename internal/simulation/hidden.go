package simulation

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
)

// checkHidden returns an error if a pass with nothing to do read an object by its name in the cache, which does not hold the object
// because of its options, although the object exists. An operator that then reads the object past the cache in the same pass knows of
// that. The object of the pass itself does not count: after it has left the cache, a pass finds out. pass is the last pass before.
func (r *Run) checkHidden(pass int) error {
	type read struct {
		pass   int
		object objectID
	}
	past := map[read]bool{}
	probes := r.log.probesSince(pass)
	for _, c := range probes {
		if c.Verb == "get" && !c.Cached {
			past[read{c.Pass, objectID{c.Kind, c.Object}}] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range probes {
		id := objectID{c.Kind, c.Object}
		obj := r.history.present[id]
		if r.passes.over(c.Pass).Request.NamespacedName == c.Object {
			continue
		}
		if c.Verb == "get" && c.Cached && apierrors.IsNotFound(c.Err) && obj != nil && r.hides(obj) && !past[read{c.Pass, id}] {
			return finding{kinds.DoesNotRest, fmt.Errorf("the operator's cache hides %s %s: a pass did not find the object, which exists, since the cache's selector or namespaces leave it out\n"+
				"Widen the cache, or give the object the labels that the selector asks for", c.Kind.Kind, nameOf(c.Object))}
		}
	}
	return nil
}

// hides reports whether the operator's cache does not hold an object because of its options.
func (r *Run) hides(obj client.Object) bool {
	return r.processes.leader.manager.Cache().Hides(obj)
}
