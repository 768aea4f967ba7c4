package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// reconciliation is one call of [ChildSet.Reconcile]: what was built, and what became of it.
type reconciliation struct {
	set    *set
	ctx    context.Context
	client client.Client
	owner  *owner
	object client.Object
	kinds  []*kind // the kind of each child

	building int          // the index of the child that is being built
	states   []childState // the state of each child
	objects  []declared   // the objects of all children, in the order in which they were built
	byName   map[record.Name]int
	inputs   map[*input]inputResult // the inputs that were read, by their pointers
	copied   client.Object          // see ownerOfInputs

	begun    []begun // what was begun, and not concluded yet
	failures []error
	waits    []*WaitingError

	unseen  bool // an object that an input reads exists, and the cache does not show it yet
	changed bool // an object was written, or read from elsewhere than the cache
	quiet   bool // there was nothing to do
	unknown bool // an input could not read something, and made a value all the same

	readsAnew bool   // the values of inputs are neither remembered nor used again
	ofReads   uint64 // the epoch of the versions that inputs read, when the reconcile began
}

// childState is what became of one child.
type childState struct {
	from, to int // the child's part of objects
	built    bool
	missing  error  // set if an object that the input reads is missing, and the child is applied all the same
	notReady string // why what comes after the child has to wait; empty if it is ready
	served   servedState
	unusable error // why a kind that is served cannot be applied yet
}

// nameIndexFrom is the number of objects from which a map, instead of a search, finds two with one name.
const nameIndexFrom = 16

func (r *reconciliation) run() error {
	if r.set.ifServed {
		defer r.acquireServed()()
	}
	for _, i := range r.set.order.sequence {
		if r.set.children[i].liveInput() == nil { // before any request is sent, so that mistakes are found first
			r.build(i)
		}
	}
	for _, i := range r.set.order.sequence {
		if r.needsOthers(i) {
			r.conclude()
		}
		if !r.states[i].built && r.set.children[i].liveInput() != nil {
			r.build(i)
		}
		r.begin(i)
	}
	r.conclude()
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
func (r *reconciliation) abandonExpansions() {
	if len(r.unbuilt()) > 0 {
		return
	}
	desired := map[string]bool{}
	for i := range r.objects {
		if r.objects[i].options.expandVolumes {
			desired[record.Key(record.ExpansionPrefix, r.owner.namespace, r.objects[i].object)] = true
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
func (r *reconciliation) build(i int) {
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
		pass.KeepAnnotation(record.RunPrefix, r.owner.set) // nobody knows which Jobs it desires
	}
	reads := r.readsOf(child)
	for j := state.from; j < state.to; j++ {
		r.objects[j].reads = reads
		r.check(j)
	}
}

// readsOf returns what the inputs of a child have read.
func (r *reconciliation) readsOf(child *child) (reads []readVersion) {
	for _, in := range child.inputs {
		reads = append(reads, in.readsIn(r)...)
	}
	return reads
}

// add adds an object to the child that is being built.
func (r *reconciliation) add(obj client.Object) {
	child := r.set.children[r.building]
	if _, untyped := child.sample.(*unstructured.Unstructured); untyped {
		obj.GetObjectKind().SetGroupVersionKind(r.kinds[r.building].gvk)
	}
	r.objects = append(r.objects, declared{
		kind: r.kinds[r.building], object: obj, options: &child.options,
		binding: child.options.bindingFor(r.object), builder: r.set.kinds.Load().builders[r.building], order: r.set.order.rank[r.building],
	})
}

// check finds what is wrong with an object before any request. It sets the owner's namespace on an object without one.
func (r *reconciliation) check(j int) {
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

// indexOf returns the index of an earlier object that has the same kind and name as object j, or -1.
func (r *reconciliation) indexOf(j int) int {
	d := &r.objects[j]
	if j < nameIndexFrom {
		return slices.IndexFunc(r.objects[:j], func(other declared) bool { return other.isNamed(d.kind.gvk, d.object) })
	}
	if r.byName == nil {
		r.byName = make(map[record.Name]int, len(r.objects))
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

// begun is an object that was applied, or that is to be created. Nobody knows yet whether it is ready.
type begun struct {
	child    int
	object   int // -1 for an error of the child itself
	result   Result
	creation *creation // nil unless it is to be created
	err      error
}

// needsOthers reports whether what has begun has to be concluded before a child begins: the child comes after it, or is of a kind
// of a higher rank. A child that is built from a live one, and a Job that runs once, are not sent together with others.
func (r *reconciliation) needsOthers(i int) bool {
	child := r.set.children[i]
	return child.options.runOnce || child.liveInput() != nil || slices.ContainsFunc(r.begun, func(b begun) bool {
		return slices.Contains(r.set.order.before[i], b.child) || rankOf(r.kinds[b.child].gvk.Kind) < rankOf(r.kinds[i].gvk.Kind)
	})
}

// begin applies the objects of a child, except those that are to be created. All are tried, whatever happens to the others.
func (r *reconciliation) begin(i int) {
	child, state := r.set.children[i], &r.states[i]
	hold := r.holdFor(child)
	if state.missing != nil {
		r.begun = append(r.begun, begun{child: i, object: -1, err: state.missing})
	}
	for j := state.from; j < state.to; j++ {
		r.objects[j].hold = hold
		b := begun{child: i, object: j}
		b.result, b.creation, b.err = r.beginObject(&r.objects[j], state)
		r.begun = append(r.begun, b)
	}
}

func (r *reconciliation) beginObject(d *declared, state *childState) (Result, *creation, error) {
	if d.err != nil {
		return Result{}, nil, d.err
	}
	a := r.set.applier
	if state.missing != nil {
		live, _, err := a.read(r.ctx, r.owner, d.kind, d.object)
		if err == nil && live != nil {
			d.options.keepWhileMissing(live, d.object)
		}
		if err != nil {
			return Result{}, nil, err
		}
	}
	if d.options.runOnce {
		result, err := a.runOnce(r.ctx, r.owner, d)
		return result, nil, err
	}
	return a.begin(r.ctx, r.owner, *d)
}

// conclude sends all creations at once, and then finds out for each object that was begun, in their order, whether it is ready.
func (r *reconciliation) conclude() {
	var creations []*creation
	for i := range r.begun {
		if c := r.begun[i].creation; c != nil {
			creations = append(creations, c)
		}
	}
	if len(creations) > 0 {
		send(r.ctx, creations...)
	}
	for i := range r.begun {
		b := &r.begun[i]
		child := r.set.children[b.child]
		if b.object < 0 {
			r.fail(b.child, child.describe(), b.err)
			continue
		}
		d := &r.objects[b.object]
		if b.creation != nil {
			b.result, b.err = r.set.applier.finishCreation(r.ctx, b.creation)
		}
		if err := r.concludeObject(d, b); err != nil {
			if child.options.ifServed {
				err = r.set.checkRefusal(d, err)
			}
			r.fail(b.child, d.kind.describe(d.object), err)
		}
	}
	r.begun = r.begun[:0]
}

// concludeObject returns nil if an object is ready.
func (r *reconciliation) concludeObject(d *declared, b *begun) error {
	if d.err != nil {
		return d.err
	}
	a, err := r.set.applier, b.err
	d.live = b.result.Object
	r.changed = r.changed || !b.result.fromCache
	if err == nil && d.options.runOnce {
		return a.runReady(r.owner, d)
	}
	if err == nil {
		err = a.finishExpansion(r.ctx, r.owner, d, d.live)
	}
	if err == nil {
		return d.kind.ready(d.live, d.options.readyCondition)
	}
	if _, waits := errors.AsType[*WaitingError](err); !waits {
		a.report(r.ctx, r.owner, d.kind, d.object, outcomeFailed, "")
	}
	if _, ok := errors.AsType[*OwnershipError](err); ok {
		a.owners.setBlocked(d.objectName(), client.ObjectKeyFromObject(r.owner.object))
	}
	return err
}

// fail notes that a child is not ready, and why.
func (r *reconciliation) fail(i int, subject string, err error) {
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

// holdFor returns the names of the objects that the child comes after and that are not ready, or nothing if the child
// may be changed.
func (r *reconciliation) holdFor(child *child) (names string) {
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

// unbuilt returns the kinds of the children that were not built in this call.
func (r *reconciliation) unbuilt() (kinds []*kind) {
	for i := range r.states {
		if !r.states[i].built {
			kinds = append(kinds, r.kinds[i])
		}
	}
	return kinds
}
