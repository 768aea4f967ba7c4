package world

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
)

// History is what has happened on the server. The run's lock guards it.
type History struct {
	server  *memoryserver.Server
	ignore  func(*unstructured.Unstructured)   // see Options
	seen    int64                              // the revision up to which Take has returned changes
	Changes []memoryserver.Change              // the changes that were observed
	Present map[request.ObjectID]client.Object // the objects that exist
	Secrets []secretValue                      // the values of the Secrets that exist
	Known   state.Identities                   // the identities of the objects that exist or are gone
}

// Take returns the server's changes since the last call.
func (h *History) Take() []memoryserver.Change {
	now, changes := h.server.Revision(), h.server.Changes(h.seen)
	h.seen = max(now, h.seen)
	if n := len(changes); n > 0 {
		h.seen = max(h.seen, changes[n-1].Revision)
		h.Changes = append(h.Changes, changes...)
	}
	return changes
}

// Add applies a change to the objects that exist.
func (h *History) Add(c *memoryserver.Change) {
	if c.New != nil {
		h.Known.Add(c.New)
	}
	h.put(request.ObjectID{Kind: c.GVK, Name: c.Key}, c.New)
}

// put stores an object. If obj is nil, it removes the object.
func (h *History) put(id request.ObjectID, obj client.Object) {
	if h.Present[id] = obj; obj == nil {
		delete(h.Present, id)
	}
	if id.Kind.Kind == "Secret" {
		h.Secrets = secretValuesOf(h.Present, h.ignore)
	}
}

// Objects returns the objects that exist.
func (h *History) Objects() []client.Object {
	all := make([]client.Object, 0, len(h.Present))
	for _, obj := range h.Present {
		all = append(all, obj)
	}
	return all
}

// hasSecret reports whether the text contains the value of any Secret.
func (h *History) hasSecret(text string) bool {
	return slices.ContainsFunc(h.Secrets, func(v secretValue) bool { return v.occursIn(text) })
}

// findLeak returns an error if a change put the value of a Secret into an object that is not a Secret.
func (h *History) findLeak(c *memoryserver.Change) error {
	if c.New == nil || c.GVK.Kind == "Secret" || len(h.Secrets) == 0 || state.FindString(c.New, h.hasSecret) == "" {
		return nil
	}
	for _, v := range h.Secrets {
		path := state.FindString(c.New, v.occursIn)
		if path != "" && (c.Old == nil || state.FindString(c.Old, v.occursIn) == "") {
			return v.leakedTo(path + " of " + c.GVK.Kind + " " + state.NameOf(c.Key))
		}
	}
	return nil
}

// FindLeakInText returns an error if the text contains the value of a Secret. what names the text.
func (h *History) FindLeakInText(what, text string) error {
	for _, v := range h.Secrets {
		if v.occursIn(text) {
			return v.leakedTo(what)
		}
	}
	return nil
}

// NameOfChange returns a change as faults and traces name it, such as "modified ConfigMap default/web".
func NameOfChange(c *memoryserver.Change) string {
	verb := map[watch.EventType]string{watch.Added: "added", watch.Modified: "modified", watch.Deleted: "deleted"}[c.Type]
	return verb + " " + c.GVK.Kind + " " + state.NameOf(c.Key)
}

// hasGeneratedName reports whether the API server generated the object's name.
func (h *History) hasGeneratedName(id request.ObjectID) bool {
	obj := h.Present[id]
	return obj != nil && obj.GetGenerateName() != ""
}

// countGroup returns how many objects of a group exist and are not being deleted. The caller holds the lock.
func (h *History) countGroup(g result.Group) int {
	exists := map[request.ObjectID]bool{}
	count := func(id request.ObjectID, obj client.Object) {
		of, ok := result.GroupOf(id.Kind, obj)
		exists[id] = ok && of == g && obj.GetDeletionTimestamp() == nil
	}
	for id, obj := range h.Present {
		if id.Kind == g.Kind {
			count(id, obj)
		}
	}
	for _, change := range h.server.Changes(h.seen) { // changes that Take has not returned yet
		if change.GVK == g.Kind {
			count(request.ObjectID{Kind: change.GVK, Name: change.Key}, change.New)
		}
	}
	n := 0
	for _, is := range exists {
		if is {
			n++
		}
	}
	return n
}
