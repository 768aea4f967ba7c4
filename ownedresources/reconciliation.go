package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// reconciliation is one call of [ChildSet.Reconcile]: what was built, and what became of it.
type reconciliation[T client.Object] struct {
	set    *ChildSet[T]
	ctx    context.Context
	client client.Client
	owner  *owner
	object T
	kinds  []*kind // of the children, in their order

	building int          // the index of the child that is being built
	states   []childState // of the children, in their order
	objects  []declared   // of all children, in the order in which they were built
	byName   map[objectName]int
	inputs   map[any]inputResult // the inputs that were read, by their pointers
	copied   T                   // see ownerOfInputs

	failures []error
	waits    []*WaitingError

	unseen  bool // an object that an input reads exists, and the cache does not show it yet
	changed bool // an object was written, or read from elsewhere than the cache
	quiet   bool // there was nothing to do
}

// childState is what became of one child.
type childState struct {
	from, to int // the child's part of objects
	built    bool
	missing  error  // an object that the input reads is missing, and the child is applied nevertheless
	notReady string // why what comes after the child has to wait; empty if it is ready
	served   servedState
	unusable error // why a kind that is served cannot be applied yet
}

type objectName struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// nameIndexFrom is the number of objects from which on an index finds two of one name.
const nameIndexFrom = 16

func (r *reconciliation[T]) run() error {
	if r.set.ifServed {
		defer r.acquireServed()()
	}
	for _, i := range r.set.order.sequence {
		if r.set.children[i].liveInput() == nil { // before any request, so that mistakes are found before any
			r.build(i)
		}
	}
	for _, i := range r.set.order.sequence {
		if !r.states[i].built && r.set.children[i].liveInput() != nil {
			r.build(i)
		}
		r.apply(i)
	}
	if r.set.ifServed {
		r.noteServed()
	}
	r.abandonExpansions()
	if len(r.failures) > 0 { // a child that could not be built, or whose replacement failed, must not be pruned
		return errors.Join(r.failures...)
	}
	pruned, err := r.set.prune(r.ctx, r.owner, desiredNames{r.objects, r.unbuilt(), r.retains()})
	r.quiet = pruned && len(r.waits) == 0 && !r.changed && r.set.canSettle()
	return errors.Join(joinWaits(r.waits), err)
}

// abandonExpansions deletes the pods of StatefulSets that were deleted to be replaced, and that are not desired any more.
func (r *reconciliation[T]) abandonExpansions() {
	if len(r.unbuilt()) > 0 {
		return
	}
	desired := map[string]bool{}
	for i := range r.objects {
		if r.objects[i].options.expandVolumes {
			desired[recordKey(ExpandVolumesPrefix, r.owner, r.objects[i].object)] = true
		}
	}
	err := r.set.abandonExpansions(r.ctx, r.owner, desired)
	if wait, ok := errors.AsType[*WaitingError](err); ok {
		r.waits = append(r.waits, wait)
	} else if err != nil {
		r.failures = append(r.failures, err)
	}
}

// build calls the child's function. It sends no request, unless the child has an input that does.
func (r *reconciliation[T]) build(i int) {
	child, state := r.set.children[i], &r.states[i]
	if state.leftOut() {
		return
	}
	r.building, state.from = i, len(r.objects)
	err := state.unusable
	if err == nil {
		err = child.build(r)
	}
	if err != nil {
		r.objects = r.objects[:state.from]
	}
	state.to, state.built = len(r.objects), err == nil
	if err != nil {
		r.fail(i, child.describe(), err)
	}
	if pass := passcontext.FromContext(r.ctx); err != nil && child.options.runOnce && pass != nil {
		pass.KeepAnnotation(RunOncePrefix, r.owner.set) // nobody knows which Jobs it desires
	}
	for j := state.from; j < state.to; j++ {
		r.check(j)
	}
}

// add adds an object to those of the child that is being built.
func (r *reconciliation[T]) add(obj client.Object) {
	child := r.set.children[r.building]
	r.objects = append(r.objects, declared{
		kind: r.kinds[r.building], object: obj, options: &child.options,
		binding: child.options.bindingFor(r.object), builder: r.set.kinds.Load().builders[r.building], order: r.set.order.rank[r.building],
	})
}

// check finds what is wrong with an object before any request. It sets the owner's namespace on one without.
func (r *reconciliation[T]) check(j int) {
	d := &r.objects[j]
	if d.options.anywhere {
		d.err = r.set.validateAnywhere(r.ctx, r.owner, d)
	} else {
		d.err = r.set.applier.validateOne(r.owner, d.kind, d.object)
	}
	if d.err != nil {
		return
	}
	if other := r.indexOf(j); other >= 0 {
		d.err = fmt.Errorf("%s is desired twice: give each child a name of its own", d.kind.describe(d.object))
		r.objects[other].err = d.err
	}
}

// indexOf returns the index of an earlier object that has the kind and name of another one, or -1.
func (r *reconciliation[T]) indexOf(j int) int {
	d := &r.objects[j]
	if j < nameIndexFrom {
		return slices.IndexFunc(r.objects[:j], func(other declared) bool { return other.isNamed(d.kind.gvk, d.object) })
	}
	if r.byName == nil {
		r.byName = make(map[objectName]int, len(r.objects))
		for k := range r.objects[:j] {
			r.byName[r.objects[k].objectName()] = k
		}
	}
	if other, found := r.byName[d.objectName()]; found {
		return other
	}
	r.byName[d.objectName()] = j
	return -1
}

// apply applies the objects of a child and checks whether they are ready. All are tried, whatever happens to the others.
func (r *reconciliation[T]) apply(i int) {
	child, state := r.set.children[i], &r.states[i]
	hold := r.holdFor(child)
	if state.missing != nil {
		r.fail(i, child.describe(), state.missing)
	}
	for j := state.from; j < state.to; j++ {
		d := &r.objects[j]
		d.hold = hold
		if err := r.applyObject(d, state); err != nil {
			if child.options.ifServed {
				err = r.set.checkRefusal(d, err)
			}
			r.fail(i, d.kind.describe(d.object), err)
		}
	}
}

// applyObject applies one object. It returns nil if that is ready.
func (r *reconciliation[T]) applyObject(d *declared, state *childState) error {
	if d.err != nil {
		return d.err
	}
	a := r.set.applier
	if state.missing != nil {
		if live, _, err := a.read(r.ctx, r.owner, d.kind, d.object); err != nil {
			return err
		} else if live != nil {
			if live, err = d.likeDesired(live); err != nil {
				return err
			}
			d.options.keepWhileMissing(live, d.object)
		}
	}
	apply := func(ctx context.Context, o *owner, d *declared) (Result, error) { return a.apply(ctx, o, *d) }
	if d.options.runOnce {
		apply = a.runOnce
	}
	result, err := apply(r.ctx, r.owner, d)
	d.live = result.Object
	r.changed = r.changed || !result.fromCache
	if err == nil && d.options.runOnce {
		return a.runReady(r.owner, d)
	}
	if err == nil {
		err = a.finishExpansion(r.ctx, r.owner, d, result.Object)
	}
	if err == nil {
		return d.kind.ready(result.Object, d.options.readyCondition)
	}
	if _, waits := errors.AsType[*WaitingError](err); !waits {
		a.record(r.ctx, r.owner, d.kind, d.object, outcomeFailed, "")
	}
	if _, ok := errors.AsType[*OwnershipError](err); ok {
		a.owners.setBlocked(d.objectName(), client.ObjectKeyFromObject(r.owner.object))
	}
	return err
}

// fail notes that a child is not ready, and why.
func (r *reconciliation[T]) fail(i int, subject string, err error) {
	if r.states[i].notReady == "" {
		r.states[i].notReady = subject
	}
	switch wait, ok := errors.AsType[*WaitingError](err); {
	case !ok:
		r.failures = append(r.failures, err)
	case wait.reason == reasonReferenceNotFound: // only its user can do something about it, so its reason comes first
		r.waits = slices.Insert(r.waits, 0, wait)
	default:
		r.waits = append(r.waits, wait)
	}
}

// holdFor returns the names of what the child comes after and that is not ready, or nothing if the child may be changed.
func (r *reconciliation[T]) holdFor(child *Child[T]) (names string) {
	for _, before := range child.after {
		if state := &r.states[r.set.order.index[before]]; state.notReady != "" {
			if names != "" {
				names += ", "
			}
			names += state.notReady
		}
	}
	return names
}

// unbuilt returns the kinds of the children whose objects are not known in this call.
func (r *reconciliation[T]) unbuilt() (kinds []*kind) {
	for i := range r.states {
		if !r.states[i].built {
			kinds = append(kinds, r.kinds[i])
		}
	}
	return kinds
}
