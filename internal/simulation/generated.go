package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// generated counts what the operator did with objects whose names the API server generated. They are counted by group,
// since their names differ between runs. The run's lock guards it.
type generated struct {
	most    map[group]int // the largest number that existed at once, after a creation by the operator
	deleted map[group]int // deletions, except while more objects existed than ever in the run without faults
}

// group is the objects of a kind with the same prefix and the same owner.
type group struct {
	kind              schema.GroupVersionKind
	namespace, prefix string
	owner             string // kind and name; "" for none
}

// String returns the group as messages name it, such as "Pod default/web-* of Shop web".
func (g group) String() string {
	name := g.kind.Kind + " " + nameOf(client.ObjectKey{Namespace: g.namespace, Name: g.prefix + "*"})
	if g.owner != "" {
		name += " of " + g.owner
	}
	return name
}

// groupOf returns the object's group. It returns false if the API server did not generate the name.
func groupOf(kind schema.GroupVersionKind, obj client.Object) (group, bool) {
	if obj == nil || obj.GetGenerateName() == "" {
		return group{}, false
	}
	g := group{kind: kind, namespace: obj.GetNamespace(), prefix: obj.GetGenerateName()}
	owner := metav1.GetControllerOfNoCopy(obj)
	if references := obj.GetOwnerReferences(); owner == nil && len(references) > 0 {
		owner = &references[0]
	}
	if owner != nil {
		g.owner = owner.Kind + " " + owner.Name
	}
	return g, true
}

func newGenerated() generated { return generated{most: map[group]int{}, deleted: map[group]int{}} }

func (g *generated) clone() generated {
	return generated{most: maps.Clone(g.most), deleted: maps.Clone(g.deleted)}
}

// countGenerated counts a creation or a deletion of an object with a generated name. A deletion does not count if there
// were more objects than ever without faults: the operator rightly removes what a fault made it create twice. The caller
// holds the lock.
func (r *Run) countGenerated(c *call, change *memoryserver.Change) {
	if change.Type == watch.Added {
		if g, ok := groupOf(change.GVK, change.New); ok {
			r.operations.unnamed.most[g] = max(r.operations.unnamed.most[g], r.countGroup(g))
		}
		return
	}
	g, ok := groupOf(change.GVK, change.Old)
	if !ok || !c.isDeletion() || r.timeTravel.created[change.Old.GetUID()] || hasNeverRun(change.Old) {
		return
	}
	if r.references != nil && r.countGroup(g)+1 > r.references.baseline.operations.unnamed.most[g] {
		return
	}
	r.operations.unnamed.deleted[g]++
}

// countGroup returns how many objects of a group exist and are not being deleted. The caller holds the lock.
func (r *Run) countGroup(g group) int {
	exists := map[objectID]bool{}
	count := func(id objectID, obj client.Object) {
		of, ok := groupOf(id.kind, obj)
		exists[id] = ok && of == g && obj.GetDeletionTimestamp() == nil
	}
	for id, obj := range r.history.present {
		if id.kind == g.kind {
			count(id, obj)
		}
	}
	for _, change := range r.server.Changes(r.history.seen) { // those that were not observed yet
		if change.GVK == g.kind {
			count(objectID{change.GVK, change.Key}, change.New)
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

// checkDeletions returns an error if more objects of a group were deleted than without faults. It checks only groups
// whose objects the operator also creates without faults.
func (g *generated) checkDeletions(without, atEnd *generated) error {
	for _, of := range slices.SortedFunc(maps.Keys(g.deleted), func(a, b group) int { return strings.Compare(a.String(), b.String()) }) {
		n := g.deleted[of]
		if want := without.deleted[of]; n > want && atEnd.most[of] > 0 {
			return fmt.Errorf("it deletes %s %s, without faults %s", of, Plural(n, "time"), Plural(want, "time"))
		}
	}
	return nil
}
