package set

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/references"
)

// Input is an [ownedresources.Input] without its type parameters.
type Input struct {
	read       func(r *Reconciliation) (any, []owned.ReadVersion, error)
	references []references.Reference
	live       []*Child // the children whose live objects the input reads
	parts      []*Input // the inputs that this one combines
	Mistake    error
}

// readsIn returns the versions of the objects that the input has read in a reconcile, including the live children from which its value is
// made.
func (in *Input) readsIn(r *Reconciliation) []owned.ReadVersion {
	reads := slices.Clip(r.inputs[in].reads)
	for _, part := range in.parts {
		reads = append(reads, part.readsIn(r)...)
	}
	for _, child := range in.live {
		state := &r.States[r.Set.order.index[child]]
		for _, d := range r.objects[state.from:state.to] {
			if d.Live != nil {
				reads = append(reads, owned.ReadVersion{Kind: d.Kind.GVK, Name: client.ObjectKeyFromObject(d.Live), Version: versionOf(d.Live)})
			}
		}
	}
	return reads
}

// inputResult is the value that was read for an input, and the versions of the objects that were read.
type inputResult struct {
	value any
	reads []owned.ReadVersion
	err   error
}

// Value returns the value of the input for the child that is being built. If an object is missing, and the child has the option
// [ownedresources.Child.KeepWhileMissing], Value returns no error.
func (in *Input) Value(r *Reconciliation) (any, error) {
	value, err := in.readOnce(r)
	return value, r.inputError(err)
}

// readOnce reads the input, at most once in a reconcile.
func (in *Input) readOnce(r *Reconciliation) (any, error) {
	result, known := r.inputs[in]
	if !known {
		value, reads, err := in.read(r)
		result = inputResult{value, reads, err}
		if len(in.live) == 0 && (len(in.parts) == 0 || err == nil) { // a live object may still be applied in this reconcile, so its input is read again
			if r.inputs == nil {
				r.inputs = map[*Input]inputResult{}
			}
			r.inputs[in] = result
		}
	}
	return result.value, result.err
}

// inputError adds the child that is being built to the error of an input. If an object is missing, and the child has the option
// KeepWhileMissing, it returns nil, so that the child is applied.
func (r *Reconciliation) inputError(err error) error {
	child := r.Set.Children[r.building]
	wait, waits := errors.AsType[*owned.WaitingError](err)
	switch {
	case err == nil:
		return nil
	case waits:
		reason, after := wait.Waiting()
		return owned.NewWaiting(reason, after, child.Describe()+": "+wait.Error())
	case !isMissing(err):
		return fmt.Errorf("input of %s: %w", child.Describe(), err)
	}
	missing := owned.NewWaiting(owned.ReasonReferenceNotFound, 0, child.Describe()+": "+missingText(err))
	if r.unseen {
		missing = owned.WithDelay(missing, apply.MaxCacheDelay) // if the cache leaves out the object, no event triggers a reconcile
	}
	if child.Options.KeepWhileMissing == nil {
		return missing
	}
	r.States[r.building].missing = missing
	return nil
}

// NewReadInput returns an input whose value is the result of read. The reader that read gets reads only the objects that refs declare.
func NewReadInput(refs []references.Reference, read func(ctx context.Context, r client.Reader, owner client.Object) (any, error)) *Input {
	in := &Input{references: refs}
	in.read = func(r *Reconciliation) (any, []owned.ReadVersion, error) {
		if known, ok := r.remembered(in); ok {
			return known.value, known.reads, nil
		}
		owner, reader := r.digestOwner(), r.newInputReader(in.references)
		value, err := read(r.ctx, reader, reader.owner)
		r.remember(in, owner, reader, value, err)
		return value, reader.reads, err
	}
	return in
}

// ownerOfInputs returns a copy of the owner for the functions of inputs. The value of an input is remembered, and may refer to parts of the
// owner that its function got. The owner of the reconcile cannot be used for that: a step may change it in memory, and a later reconcile
// may read another owner into the same memory.
func (r *Reconciliation) ownerOfInputs() client.Object {
	if r.copied == nil {
		r.copied = r.Object.DeepCopyObject().(client.Object)
	}
	return r.copied
}

// NewLiveInput returns an input whose value is computed from the live objects of a child.
func NewLiveInput(c *Child, value func(live []client.Object) (any, error)) *Input {
	if c == nil {
		return &Input{Mistake: errors.New("the child whose live object is an input is nil")}
	}
	in := &Input{live: []*Child{c}}
	in.read = func(r *Reconciliation) (any, []owned.ReadVersion, error) {
		live, err := r.liveObjects(c)
		if err != nil {
			return nil, nil, err
		}
		made, err := value(live)
		return made, nil, err
	}
	return in
}

// NewCombinedInput returns an input whose value is computed from the values of other inputs.
func NewCombinedInput(parts []*Input, value func(values map[*Input]any) (any, error)) *Input {
	in := &Input{parts: parts}
	for _, part := range parts {
		in.references, in.live = append(in.references, part.references...), append(in.live, part.live...)
		in.Mistake = cmp.Or(in.Mistake, part.Mistake)
	}
	in.read = func(r *Reconciliation) (made any, _ []owned.ReadVersion, err error) {
		values := make(map[*Input]any, len(in.parts))
		for _, part := range in.parts {
			read, failure := part.readOnce(r)
			values[part] = read
			if err == nil || isMissing(err) && failure != nil {
				err = failure // a failure that is not a missing object comes first: not even a child with KeepWhileMissing is built then
			}
		}
		if err == nil || isMissing(err) && r.Set.Children[r.building].Options.KeepWhileMissing != nil {
			var failure error
			made, failure = value(values) // the value of an input whose object is missing is zero
			err = cmp.Or(failure, err)
		}
		return made, nil, err
	}
	return in
}

// liveObjects returns the live objects of a child, typed like the desired ones. While an object does not exist, the error is a
// [*owned.WaitingError].
func (r *Reconciliation) liveObjects(child *Child) (objs []client.Object, err error) {
	state := &r.States[r.Set.order.index[child]]
	if state.Served.leavesOut() {
		return nil, nil
	}
	for _, d := range r.objects[state.from:state.to] {
		if d.Live == nil {
			return nil, waitForDependency(d.Kind.Describe(d.Object))
		}
		live, err := d.LikeDesired(d.Live)
		if err != nil {
			return nil, err
		}
		objs = append(objs, live)
	}
	if !state.built {
		return nil, waitForDependency(child.Describe())
	}
	return objs, nil
}

func waitForDependency(on string) *owned.WaitingError {
	return owned.NewWaiting(owned.ReasonDependencyNotReady, 0, "it waits for "+on)
}

// MissingError names objects that do not exist.
type MissingError []string

func (m MissingError) Error() string { return strings.Join(m, ", ") + ": not found" }

func isMissing(err error) bool {
	_, ok := errors.AsType[MissingError](err)
	return ok || apierrors.IsNotFound(err)
}

// missingText returns the message of the MissingError in err. If err contains none, it returns the whole message of err.
func missingText(err error) string {
	if missing, ok := errors.AsType[MissingError](err); ok {
		return missing.Error()
	}
	return err.Error()
}
