package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/text"
)

// generated counts what the operator did with objects whose names the API server generated. The names differ between runs, so objects are
// counted by Group. The run's lock guards it.
type generated struct {
	Most    map[Group]int // the largest number that existed at once, after a creation by the operator
	Deleted map[Group]int // deletions, except while more objects existed than ever in the run without faults
}

// Group is the objects of a kind with the same prefix and the same owner.
type Group struct {
	Kind              schema.GroupVersionKind
	namespace, prefix string
	owner             string // Kind and name; "" for none
}

// String returns the group as messages name it, such as "Pod default/web-* of Shop web".
func (g Group) String() string {
	name := g.Kind.Kind + " " + state.NameOf(client.ObjectKey{Namespace: g.namespace, Name: g.prefix + "*"})
	if g.owner != "" {
		name += " of " + g.owner
	}
	return name
}

// GroupOf returns the object's group. It returns false if the API server did not generate the name.
func GroupOf(kind schema.GroupVersionKind, obj client.Object) (Group, bool) {
	if obj == nil || obj.GetGenerateName() == "" {
		return Group{}, false
	}
	g := Group{Kind: kind, namespace: obj.GetNamespace(), prefix: obj.GetGenerateName()}
	owner := metav1.GetControllerOfNoCopy(obj)
	if references := obj.GetOwnerReferences(); owner == nil && len(references) > 0 {
		owner = &references[0]
	}
	if owner != nil {
		g.owner = owner.Kind + " " + owner.Name
	}
	return g, true
}

func newGenerated() generated { return generated{Most: map[Group]int{}, Deleted: map[Group]int{}} }

func (g *generated) clone() generated {
	return generated{Most: maps.Clone(g.Most), Deleted: maps.Clone(g.Deleted)}
}

// CheckDeletions returns an error if more objects of a group were deleted than without faults. It checks only groups with objects that the
// operator also creates without faults. atEnd has the counts at the end of the run without faults.
func (g *generated) CheckDeletions(without, atEnd *generated) error {
	for _, of := range slices.SortedFunc(maps.Keys(g.Deleted), func(a, b Group) int { return strings.Compare(a.String(), b.String()) }) {
		n := g.Deleted[of]
		if want := without.Deleted[of]; n > want && atEnd.Most[of] > 0 {
			return fmt.Errorf("it deletes %s %s, without faults %s", of, text.Plural(n, "time"), text.Plural(want, "time"))
		}
	}
	return nil
}
