package set

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
)

// begun is an object after begin and before conclude: it was applied, or its creation is prepared. Whether it is ready was not checked yet.
type begun struct {
	child    int
	object   int // the index of the object; -1 for an error of the child itself
	result   apply.Result
	creation *apply.Creation // the prepared creation; nil if the object exists
	err      error
}

// needsOthers reports whether the objects that were begun have to be concluded before child i begins. That is so if child i comes after
// one of their children, or if its kind has a higher rank than one of their kinds. For a child that is built from a live object, and for a
// Job that runs once, it always reports true, because such a child is not sent together with others.
func (r *Reconciliation) needsOthers(i int) bool {
	child := r.Set.Children[i]
	return child.Options.RunOnce || child.liveInput() != nil || slices.ContainsFunc(r.begun, func(b begun) bool {
		return slices.Contains(r.Set.order.before[i], b.child) || owned.RankOf(r.Kinds[b.child].GVK.Kind) < owned.RankOf(r.Kinds[i].GVK.Kind)
	})
}

// begin applies the objects of a child. If an object does not exist, begin only prepares its creation, which conclude sends. If one object
// fails, begin continues with the next.
func (r *Reconciliation) begin(i int) {
	child, state := r.Set.Children[i], &r.States[i]
	hold := r.holdFor(child)
	if state.missing != nil {
		r.begun = append(r.begun, begun{child: i, object: -1, err: state.missing})
	}
	for j := state.from; j < state.to; j++ {
		r.objects[j].Hold = hold
		b := begun{child: i, object: j}
		b.result, b.creation, b.err = r.beginObject(&r.objects[j], state)
		r.begun = append(r.begun, b)
	}
}

func (r *Reconciliation) beginObject(d *owned.Declared, state *ChildState) (apply.Result, *apply.Creation, error) {
	if d.Err != nil {
		return apply.Result{}, nil, d.Err
	}
	if err := keepWhileMissing(r, d, state); err != nil {
		return apply.Result{}, nil, err
	}
	a := r.Set.Applier
	if d.Options.RunOnce {
		result, err := a.RunOnce(r.ctx, r.owner, d)
		return result, nil, err
	}
	return a.Begin(r.ctx, r.owner, *d)
}

// keepWhileMissing calls the function of [ownedresources.Child.KeepWhileMissing] if an object that an input reads is missing. The function
// copies parts of the live object into the desired one.
func keepWhileMissing(r *Reconciliation, d *owned.Declared, state *ChildState) error {
	if state.missing == nil {
		return nil
	}
	live, _, err := r.Set.Applier.Read(r.ctx, r.owner, d.Kind, d.Object)
	if err == nil && live != nil {
		d.Options.KeepWhileMissing(live, d.Object)
	}
	return err
}

// conclude sends all prepared creations concurrently. Then it checks each object that was begun, in order: whether it is ready, or why not.
func (r *Reconciliation) conclude() {
	var creations []*apply.Creation
	for i := range r.begun {
		if c := r.begun[i].creation; c != nil {
			creations = append(creations, c)
		}
	}
	if len(creations) > 0 {
		apply.Send(r.ctx, creations...)
	}
	for i := range r.begun {
		b := &r.begun[i]
		child := r.Set.Children[b.child]
		if b.object < 0 {
			r.fail(b.child, child.Describe(), b.err)
			continue
		}
		d := &r.objects[b.object]
		if b.creation != nil {
			b.result, b.err = r.Set.Applier.FinishCreation(r.ctx, b.creation)
		}
		if err := r.concludeObject(d, b); err != nil {
			if child.Options.IfServed {
				err = r.Set.Served.CheckRefusal(d, err)
			}
			holds := d.Kind.Describe(d.Object)
			if isUsableClaim(d) {
				holds = ""
			}
			r.fail(b.child, holds, err)
		}
	}
	r.begun = r.begun[:0]
}

// isUsableClaim reports whether an object is a PersistentVolumeClaim that exists and is not lost. Later children need not wait until it is
// bound, because a claim may be bound only when a pod uses it. If the child has the option ReadyWhen, they wait for its condition.
func isUsableClaim(d *owned.Declared) bool {
	if d.Live == nil || d.Kind.GVK != feature.ClaimKind || d.Options.ReadyCondition != "" {
		return false
	}
	phase, err := feature.PhaseOf(d.Live)
	return err == nil && phase != corev1.ClaimLost
}

// concludeObject returns nil if an object is ready, or an error that says why it is not. It also sets the Live object of d.
func (r *Reconciliation) concludeObject(d *owned.Declared, b *begun) error {
	if d.Err != nil {
		return d.Err
	}
	a, err := r.Set.Applier, b.err
	d.Live = b.result.Object
	r.changed = r.changed || !b.result.FromCache
	if err == nil && d.Options.RunOnce {
		return feature.RunReady(r.owner, d)
	}
	if err == nil {
		err = write.FinishExpansion(r.ctx, r.owner, d, d.Live)
	}
	if err == nil {
		return d.Kind.Ready(d.Live, d.Options.ReadyCondition)
	}
	if _, waits := errors.AsType[*owned.WaitingError](err); !waits {
		a.Report(r.ctx, r.owner, d.Kind, d.Object, report.OutcomeFailed, "")
	}
	if _, ok := errors.AsType[*owned.OwnershipError](err); ok {
		r.Set.Owners.setBlocked(d.ObjectName(), client.ObjectKeyFromObject(r.owner.Object))
	}
	return err
}

// holdFor returns the names of the objects for which the child has to wait: it comes after them, and they are not ready. If there are none,
// it returns "".
func (r *Reconciliation) holdFor(child *Child) (names string) {
	for _, before := range child.After {
		if state := &r.States[r.Set.order.index[before]]; state.NotReady != "" {
			if names != "" {
				names += ", "
			}
			names += state.NotReady
		}
	}
	return names
}
