// Package set reconciles the children of owners: it reads inputs, builds the children, applies them, prunes the children that are not
// desired any more, and watches what they depend on. A [Reconciliation] is one reconcile of one owner. Its method run is where to begin
// reading.
package set

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/references"
)

// Set is an [ownedresources.ChildSet] without the type of its owners.
type Set struct {
	Name          string
	FormerNames   []string
	ownerType     reflect.Type
	Children      []*Child
	order         *Order
	Mistake       error // the mistake in the children; nil for none
	RemoveInOrder bool
	Applier       *apply.Applier
	Owners        *ownerMemory
	childIndex    *childindex.Index
	APIReader     client.Reader     // reads from the API server; nil without a manager
	Cache         client.Reader     // the manager's cache; nil without a manager
	coverage      sync.Map          // coverage → bool: the results of the method covers
	Forms         *references.Forms // nil without a manager, and for a step of package reconcile, whose client has them
	kinds         atomic.Pointer[ChildKinds]
	ifServed      bool  // a child has the option IfServed
	Served        gates // nil without a manager
}

// New returns a set of children for owners of this Go type.
func New(ownerType reflect.Type, children []*Child) *Set {
	s := &Set{ownerType: ownerType, Children: children, Applier: apply.New(), childIndex: childindex.New()}
	s.Owners = newOwnerMemory(s.Applier.Versions)
	s.order, s.Mistake = NewOrder(children)
	for _, c := range children {
		if c != nil {
			c.inSet, s.ifServed = true, s.ifServed || c.Options.IfServed
		}
	}
	return s
}

// err returns the mistake in the children, or in a later change of a child.
func (s *Set) err() error {
	if s.Mistake != nil {
		return s.Mistake
	}
	for i, c := range s.Children {
		if c.Mistake != nil {
			return fmt.Errorf("child %d, a %s: %w", i+1, c.kindName(), c.Mistake)
		}
	}
	return nil
}

// newOwner returns an empty object of the owners' type.
func (s *Set) newOwner() client.Object {
	return reflect.New(s.ownerType.Elem()).Interface().(client.Object)
}

// finalizerNames returns the finalizers of the set under its present name and its former names. If the set needs no finalizer, it returns
// nil.
func (s *Set) finalizerNames() []string {
	if name := s.FinalizerName(); name != "" {
		return append([]string{name}, s.FormerFinalizerNames()...)
	}
	return nil
}

// Reconcile applies the children of obj, prunes the others, and checks whether all are ready: see
// [ownedresources.ChildSet.Reconcile].
func (s *Set) Reconcile(ctx context.Context, c client.Client, obj client.Object) error {
	r, err := newReconciliation(ctx, s, c, obj, toApply)
	if err != nil {
		return err
	}
	defer s.Applier.EmitEvents(r.owner)
	var found settledOwner // found stays zero if a function panics
	uid := r.owner.Reference.UID
	epoch := s.Owners.begin(uid)
	defer func() { s.Owners.end(uid, epoch, found) }()
	err = r.run()
	found = settledBy(r)
	return err
}

// purpose says for what a Reconciliation is made.
type purpose int

const (
	toApply purpose = iota // the children are applied, and the values of inputs are remembered
	toLook                 // nothing is written, and the values of inputs are neither taken from the memory nor kept there
	toClean                // the owner is being deleted: nothing is applied
)

// newReconciliation returns the state for one reconcile of an owner, before anything is done. The error is a mistake in the set or in the
// owner.
func newReconciliation(ctx context.Context, s *Set, c client.Client, obj client.Object, purpose purpose) (*Reconciliation, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	o, err := s.ownerOf(obj, c)
	if err != nil {
		return nil, err
	}
	kinds, err := s.KindsIn(c.Scheme())
	if err != nil {
		return nil, err
	}
	r := &Reconciliation{
		Set: s, ctx: ctx, client: c, owner: &o, Object: o.Seen, Kinds: kinds, States: make([]ChildState, len(s.Children)),
		readsAnew: purpose == toLook,
	}
	if purpose != toClean {
		o.BuiltFrom = &owned.BuiltFrom{Owner: o.Seen}
		r.objects, r.ofReads = make([]owned.Declared, 0, len(s.Children)), s.epochOfReads(c)
	}
	return r, nil
}

// ownerOf returns an object as the [owned.Owner] of the set's children.
func (s *Set) ownerOf(obj client.Object, c client.Client) (owned.Owner, error) {
	o, err := owned.NewOwner(obj, c, s.APIReader)
	if err == nil {
		o.Seen, o.Set, o.FormerSets, o.Finalizers = s.withoutRecords(obj), s.Name, s.FormerNames, s.finalizerNames()
	}
	return o, err
}

// Known returns the kinds of the children. It returns nil before they were looked up.
func (s *Set) Known() *ChildKinds { return s.kinds.Load() }

// KindsIn returns the kinds of the children in a scheme, in the order of the children.
func (s *Set) KindsIn(scheme *runtime.Scheme) ([]*owned.Kind, error) {
	if known := s.kinds.Load(); known != nil && known.scheme == scheme {
		return known.kinds, nil
	}
	found := &ChildKinds{children: s.Children, scheme: scheme}
	for _, child := range s.Children {
		var k *owned.Kind
		var err error
		if child.Options.IfServed { // the API server may have no schema of the kind yet, see acquireServed
			k, err = found.uncompiled(child.Sample, scheme)
		} else {
			k, err = s.compile(child, scheme)
		}
		if err != nil {
			return nil, err
		}
		found.kinds = append(found.kinds, k)
	}
	found.Builders = found.buildersOf()
	s.kinds.Store(found)
	return found.kinds, nil
}

// compile returns the kind of a child with its schema. It is looked up only once.
func (s *Set) compile(child *Child, scheme *runtime.Scheme) (*owned.Kind, error) {
	if child.Configuration {
		return s.Applier.Kinds.OfConfiguration(child.Sample, scheme)
	}
	return s.Applier.Kinds.Of(child.Sample, scheme)
}

// Watched returns an empty object of each child's kind.
func (s *Set) Watched() []client.Object {
	var kinds []client.Object
	for _, child := range s.Children {
		if child != nil { // a nil child is a mistake, which Reconcile returns
			kinds = append(kinds, child.empty())
		}
	}
	return kinds
}
