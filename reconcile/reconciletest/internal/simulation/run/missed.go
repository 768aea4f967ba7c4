package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/fakemanager"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// missedChanges are changes that triggered no pass over an object, though the last pass over it read objects of their kinds. Either these
// changes should have triggered a pass, or the pass reads objects that it does not need.
type missedChanges struct {
	over      fakemanager.Target
	unwatched []string // changes that the operator does not watch, or does not map to the object
	elsewhere []string // changes in other namespaces: the pass lists the kind in all of them
	others    []string // changes of other objects' children: the pass lists the kind without a selector
	kinds     []string // the kinds in elsewhere or others
}

func (m *missedChanges) none() bool { return len(m.unwatched)+len(m.elsewhere)+len(m.others) == 0 }

// explain returns the error about the changes. wrote are the requests that the pass still had to send.
func (m *missedChanges) explain(wrote []string) error {
	had := strings.Join(wrote, ", ")
	kinds, object := strings.Join(m.kinds, ", "), operator.DescribeTarget(m.over)
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

// explainDelay returns the error about a pass that the operator had asked for after a delay, and that had not run when the operator counted
// as quiet.
func (m *missedChanges) explainDelay(delay time.Duration, wrote []string) error {
	remedy := "If that pass is meant to do it, set a Horizon in which it runs"
	if all := slices.Concat(m.unwatched, m.elsewhere, m.others); len(all) > 0 {
		remedy = fmt.Sprintf("Either a watch is missing: %s triggered no pass. Or that pass is meant to see it: then set a Horizon in which it runs", strings.Join(all, ", "))
	}
	return fmt.Errorf("the last pass over %s asked for another one after %s, for which the scenario does not wait, and when the operator was quiet one more pass still had to %s\n%s",
		operator.DescribeTarget(m.over), delay, strings.Join(wrote, ", "), remedy)
}

// missedChanges returns the changes between the last two passes over the object of the last pass. It returns only changes of kinds that the
// last pass read.
func (p *probes) missedChanges() *missedChanges {
	last, reads := p.world.Log.LastPass()
	p.world.Mu.Lock()
	m := &missedChanges{over: p.operator.Passes.Over(last)}
	p.world.Mu.Unlock()
	for _, row := range p.world.Trace.ChangesBefore(last) {
		list, read := &m.unwatched, reads[row.Changed.GVK.Kind]
		switch {
		case isGot(row.Changed, read):
		case !isListed(row.Changed, read):
			continue
		case m.isElsewhere(row.Changed, read):
			list = &m.elsewhere
		case p.isOfAnother(row.Changed, m.over):
			list = &m.others
		}
		change := row.Change
		if obj := cmp.Or(row.Changed.New, row.Changed.Old); p.operator.Hides(obj) {
			change += " (which the cache's selector or namespaces leave out)"
		}
		if !slices.Contains(*list, change) {
			*list = append(*list, change)
		}
		if kind := row.Changed.GVK.Kind; list != &m.unwatched && !slices.Contains(m.kinds, kind) {
			m.kinds = append(m.kinds, kind)
		}
	}
	return m
}

// isGot reports whether the changed object was read by its name.
func isGot(change *memoryserver.Change, read []request.Request) bool {
	return slices.ContainsFunc(read, func(request request.Request) bool { return request.Object == change.Key })
}

// isListed reports whether a list of the pass covered the namespace of the changed object.
func isListed(change *memoryserver.Change, read []request.Request) bool {
	return slices.ContainsFunc(read, func(request request.Request) bool {
		return request.Verb == "list" && (request.Object.Namespace == "" || request.Object.Namespace == change.Key.Namespace)
	})
}

// isElsewhere reports whether a change is in another namespace than the object of the pass, and the pass read it only because it listed the
// kind in all namespaces.
func (m *missedChanges) isElsewhere(change *memoryserver.Change, read []request.Request) bool {
	own := m.over.Request.Namespace
	return own != "" && change.Key.Namespace != "" && change.Key.Namespace != own &&
		!slices.ContainsFunc(read, func(request request.Request) bool { return request.Object.Namespace == change.Key.Namespace })
}

// isOfAnother reports whether the controller of the changed object, in its owner references, is another object that the same reconciler
// handles.
func (p *probes) isOfAnother(change *memoryserver.Change, over fakemanager.Target) bool {
	obj := change.New
	if obj == nil {
		obj = change.Old
	}
	owner := metav1.GetControllerOfNoCopy(obj)
	if owner == nil {
		return false
	}
	p.world.Mu.Lock()
	defer p.world.Mu.Unlock()
	for _, namespace := range []string{"", change.Key.Namespace} {
		other := over
		other.Request.NamespacedName = client.ObjectKey{Namespace: namespace, Name: owner.Name}
		if _, known := p.operator.Passes.Outcome[other]; known && other != over {
			return true
		}
	}
	return false
}
