package set

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// Reconciliation is the state of one call of [ownedresources.ChildSet.Reconcile]: what was built, and what was done with it.
type Reconciliation struct {
	Set    *Set
	ctx    context.Context
	client client.Client
	owner  *owned.Owner
	Object client.Object
	Kinds  []*owned.Kind // the kind of each child

	building int              // the index of the child that is being built
	States   []ChildState     // the state of each child
	objects  []owned.Declared // the objects of all children, in the order in which they were built
	byName   map[record.Name]int
	inputs   map[*Input]inputResult // the results of the inputs that were read
	copied   client.Object          // the copy of the owner for inputs, see ownerOfInputs

	begun    []begun // the objects that were begun and not concluded yet, see begun
	failures []error
	waits    []*owned.WaitingError

	unseen  bool // an object that an input reads exists, and the cache does not show it
	changed bool // an object was written, or was not read from the cache
	quiet   bool // there was nothing to do
	unknown bool // an input could not read an object, and returned a value all the same

	readsAnew bool   // values of inputs are neither taken from the memory nor kept there
	ofReads   uint64 // the number that versions.Epoch had for the objects of inputs when the reconcile began
}

// ChildState is what was done with one child.
type ChildState struct {
	from, to int // the child's objects are objects[from:to]
	built    bool
	missing  error  // set if an object that an input reads is missing, and the child is applied all the same
	NotReady string // the name of the object for which later children have to wait; empty if this child is ready
	Served   servedState
	unusable error // why the child cannot be applied although its kind is served; nil for nothing
}

func (r *Reconciliation) run() error {
	if r.Set.ifServed {
		defer r.acquireServed()()
	}
	for _, i := range r.Set.order.Sequence {
		if r.Set.Children[i].liveInput() == nil { // these children are built before any write, so that most mistakes are found before it
			r.build(i)
		}
	}
	for _, i := range r.Set.order.Sequence {
		if r.needsOthers(i) {
			r.conclude()
		}
		if !r.States[i].built && r.Set.Children[i].liveInput() != nil {
			r.build(i)
		}
		r.begin(i)
	}
	r.conclude()
	if r.Set.ifServed {
		r.noteServed()
	}
	r.abandonExpansions()
	if len(r.failures) > 0 { // children that could not be built, or whose replacement failed, must not be pruned
		return errors.Join(r.failures...)
	}
	nothingToPrune, err := r.Set.prune(r.ctx, r.owner, DesiredNames{r.objects, r.unbuilt(), r.retains()})
	r.quiet = nothingToPrune && len(r.waits) == 0 && !r.changed && r.Set.canSettle()
	return errors.Join(owned.JoinWaits(r.waits), err)
}

// abandonExpansions deletes the pods of StatefulSets that were deleted to be replaced, and that are not desired any more.
func (r *Reconciliation) abandonExpansions() {
	if len(r.unbuilt()) > 0 {
		return
	}
	desired := map[string]bool{}
	for i := range r.objects {
		if r.objects[i].Options.ExpandVolumes {
			desired[record.Key(record.ExpansionPrefix, r.owner.Namespace, r.objects[i].Object)] = true
		}
	}
	err := r.Set.abandonExpansions(r.ctx, r.owner, desired)
	if wait, ok := errors.AsType[*owned.WaitingError](err); ok {
		r.waits = append(r.waits, wait)
	} else if err != nil {
		r.failures = append(r.failures, err)
	}
}

// build calls the function that builds the child's objects. Only the inputs of the child may send requests.
func (r *Reconciliation) build(i int) {
	child, state := r.Set.Children[i], &r.States[i]
	if state.Served.leavesOut() {
		return
	}
	r.building, state.from = i, len(r.objects)
	err := state.unusable
	if err == nil {
		err = child.Build(r)
	}
	if err != nil {
		r.objects = r.objects[:state.from]
	}
	state.to, state.built = len(r.objects), err == nil
	if err != nil {
		r.fail(i, child.Describe(), err)
	}
	if pass := passcontext.FromContext(r.ctx); err != nil && child.Options.RunOnce && pass != nil {
		pass.KeepAnnotation(record.RunPrefix, r.owner.Set) // it is not known which Jobs the child desires
	}
	reads := r.readsOf(child)
	for j := state.from; j < state.to; j++ {
		r.objects[j].Reads = reads
		r.check(j)
	}
}

// readsOf returns the versions of the objects that the inputs of a child have read.
func (r *Reconciliation) readsOf(child *Child) (reads []owned.ReadVersion) {
	for _, in := range child.Inputs {
		reads = append(reads, in.readsIn(r)...)
	}
	return reads
}

// Add adds an object to the child that is being built.
func (r *Reconciliation) Add(obj client.Object) {
	child := r.Set.Children[r.building]
	if _, untyped := child.Sample.(*unstructured.Unstructured); untyped {
		obj.GetObjectKind().SetGroupVersionKind(r.Kinds[r.building].GVK)
	}
	binding := child.Options.BindingFor(r.Object)
	if binding != owned.ByReference {
		r.owner.HideFromApplications(r.Kinds[r.building].GVK.GroupKind(), obj)
	}
	r.objects = append(r.objects, owned.Declared{
		Kind: r.Kinds[r.building], Object: obj, Options: &child.Options,
		Binding: binding, Builder: r.Set.kinds.Load().Builders[r.building], Order: r.Set.order.Rank[r.building],
	})
}

// check records in an object what is wrong with it, before it is read or written. It sets the owner's namespace on an object without one.
func (r *Reconciliation) check(j int) {
	d := &r.objects[j]
	if d.Options.Anywhere {
		d.Err = r.Set.validateAnywhere(r.ctx, r.owner, d)
	} else {
		d.Err = r.Set.Applier.ValidateOne(r.owner, d.Kind, d.Object)
	}
	if d.Err != nil {
		d.Err = fmt.Errorf("%w (%s builds it)", d.Err, functionOf(r, j))
		return
	}
	if other := r.indexOf(j); other >= 0 {
		d.Err = errReportedOnce
		r.objects[other].Err = fmt.Errorf("%s is desired twice: give each child a name of its own (%s and %s build it)",
			d.Kind.Describe(d.Object), functionOf(r, other), functionOf(r, j))
	}
}

// functionOf returns the name of the function that built object j, for messages.
func functionOf(r *Reconciliation, j int) string {
	i := slices.IndexFunc(r.States, func(s ChildState) bool { return s.from <= j && j < s.to })
	return path.Base(r.Set.Children[i].function)
}

// errReportedOnce is the error of an object that has the kind and the name of an earlier object. The error of the earlier object names the
// functions that build the two.
var errReportedOnce = errors.New("an earlier object has the same name")

// indexOf returns the index of the earlier object with the kind and the name of object j. If there is none, it returns -1.
func (r *Reconciliation) indexOf(j int) int {
	d := &r.objects[j]
	if j < NameIndexFrom {
		return slices.IndexFunc(r.objects[:j], func(other owned.Declared) bool { return other.IsNamed(d.Kind.GVK, d.Object) })
	}
	if r.byName == nil {
		r.byName = make(map[record.Name]int, len(r.objects))
		for k := range r.objects[:j] {
			r.byName[r.objects[k].ObjectName()] = k
		}
	}
	if other, found := r.byName[d.ObjectName()]; found {
		return other
	}
	r.byName[d.ObjectName()] = j
	return -1
}

// fail records why a child is not ready. subject is the name of the object for which later children have to wait.
func (r *Reconciliation) fail(i int, subject string, err error) {
	if r.States[i].NotReady == "" {
		r.States[i].NotReady = subject
	}
	if errors.Is(err, errReportedOnce) {
		return
	}
	wait, ok := errors.AsType[*owned.WaitingError](err)
	if !ok {
		r.failures = append(r.failures, err)
		return
	}
	switch reason, _ := wait.Waiting(); reason {
	case owned.ReasonReferenceNotFound: // only the user can create a missing object, so this reason comes first
		r.waits = slices.Insert(r.waits, 0, wait)
	default:
		r.waits = append(r.waits, wait)
	}
}

// unbuilt returns the kinds of the children that were not built.
func (r *Reconciliation) unbuilt() (kinds []*owned.Kind) {
	for i := range r.States {
		if !r.States[i].built {
			kinds = append(kinds, r.Kinds[i])
		}
	}
	return kinds
}
