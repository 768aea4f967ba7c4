package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
	"github.com/opblocks/opblocks/internal/simulation/fakemanager"
)

// missedChanges are the changes that triggered no pass over an object, though the last pass over it shows that they should
// have, or that it reads too much.
type missedChanges struct {
	over      fakemanager.Target
	unwatched []string // the operator does not watch them, or does not map them to the object
	elsewhere []string // changes in other namespaces: the pass lists the kind in all of them
	others    []string // changes of other objects' children: the pass lists the kind without a selector
	kinds     []string // the kinds in elsewhere or others
}

func (m *missedChanges) none() bool { return len(m.unwatched)+len(m.elsewhere)+len(m.others) == 0 }

// explain returns the error about the changes. wrote are the requests that the pass still had to send.
func (m *missedChanges) explain(wrote []string) error {
	had := strings.Join(wrote, ", ")
	kinds, object := strings.Join(m.kinds, ", "), describeTarget(m.over)
	switch {
	case len(m.unwatched) > 0:
		return fmt.Errorf("a watch is missing: %s triggered no pass, and when the operator was quiet one more pass still had to %s\n"+
			"Watch that kind, or correct the watch's predicate or mapping", strings.Join(m.unwatched, ", "), had)
	case len(m.elsewhere) > 0:
		return fmt.Errorf("a pass over %s lists %s in all namespaces: %s triggered no pass, and when the operator was quiet one more pass still had to %s\n"+
			"List in the object's own namespace (client.InNamespace). If all are meant, watch them all, and enqueue the object for each",
			object, kinds, strings.Join(m.elsewhere, ", "), had)
	}
	return fmt.Errorf("a pass over %s lists %s of other objects too: %s triggered no pass, and when the operator was quiet one more pass still had to %s\n"+
		"List those of the object alone, by a label or by an index of the owner. If all are meant, enqueue the object for each",
		object, kinds, strings.Join(m.others, ", "), had)
}

// missedChanges returns the changes since the second to last pass over the object of the last pass, of the kinds that the last
// pass read.
func (r *Run) missedChanges() *missedChanges {
	last, reads := r.log.lastPass()
	r.mu.Lock()
	m := &missedChanges{over: r.passes.over(last)}
	r.mu.Unlock()
	for _, row := range r.trace.changesBefore(last) {
		list, read := &m.unwatched, reads[row.changed.GVK.Kind]
		switch {
		case isGot(row.changed, read):
		case !isListed(row.changed, read):
			continue
		case m.isElsewhere(row.changed, read):
			list = &m.elsewhere
		case r.isOfAnother(row.changed, m.over):
			list = &m.others
		}
		change := row.change
		if obj := cmp.Or(row.changed.New, row.changed.Old); r.hides(obj) {
			change += " (which the cache's selector or namespaces leave out)"
		}
		if !slices.Contains(*list, change) {
			*list = append(*list, change)
		}
		if kind := row.changed.GVK.Kind; list != &m.unwatched && !slices.Contains(m.kinds, kind) {
			m.kinds = append(m.kinds, kind)
		}
	}
	return m
}

// isGot reports whether the object of a change was read by its name.
func isGot(change *memoryserver.Change, read []Request) bool {
	return slices.ContainsFunc(read, func(request Request) bool { return request.Object == change.Key })
}

// isListed reports whether the object of a change is in the namespaces of a list.
func isListed(change *memoryserver.Change, read []Request) bool {
	return slices.ContainsFunc(read, func(request Request) bool {
		return request.Verb == "list" && (request.Object.Namespace == "" || request.Object.Namespace == change.Key.Namespace)
	})
}

// isElsewhere reports whether a change is in another namespace than the object of the pass, which listed the kind in all
// namespaces.
func (m *missedChanges) isElsewhere(change *memoryserver.Change, read []Request) bool {
	own := m.over.Request.Namespace
	return own != "" && change.Key.Namespace != "" && change.Key.Namespace != own &&
		!slices.ContainsFunc(read, func(request Request) bool { return request.Object.Namespace == change.Key.Namespace })
}

// isOfAnother reports whether the changed object is controlled by another object over which the same controller has passes.
func (r *Run) isOfAnother(change *memoryserver.Change, over fakemanager.Target) bool {
	obj := change.New
	if obj == nil {
		obj = change.Old
	}
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, namespace := range []string{"", change.Key.Namespace} {
		other := over
		other.Request.NamespacedName = client.ObjectKey{Namespace: namespace, Name: owner.Name}
		if _, known := r.passes.outcome[other]; known && other != over {
			return true
		}
	}
	return false
}

// over returns the object of a pass that is the last one over it. The caller holds the lock.
func (p *passes) over(pass int) fakemanager.Target {
	for target, o := range p.outcome {
		if o.pass == pass {
			return target
		}
	}
	return fakemanager.Target{}
}
