package set

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/forecast"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// Preview returns what the next [Set.Reconcile] would do to the children of obj, also for children that are as desired. c must refuse
// all writes but dry runs. Preview builds the children as Reconcile does, and looks at all of them: what a child waits for is in its
// change.
//
// The error is a mistake in the set. What fails for one child is in its change.
func (s *Set) Preview(ctx context.Context, c client.Client, obj client.Object) ([]preview.Change, error) {
	r, err := newReconciliation(ctx, s, c, obj, toLook)
	if err != nil {
		return nil, err
	}
	if s.ifServed {
		defer r.acquireServed()()
	}
	v := &walk{r: r}
	v.takeFailures(0)
	v.children()
	v.pruned()
	return v.changes, nil
}

// walk looks at the children of one owner.
type walk struct {
	r       *Reconciliation
	changes []preview.Change
	failed  bool // nothing is pruned
}

// children looks at what is desired, in the order of [Reconciliation.run].
func (v *walk) children() {
	for _, i := range v.r.Set.order.Sequence {
		if v.r.Set.Children[i].liveInput() == nil {
			v.buildChild(i)
		}
	}
	for _, i := range v.r.Set.order.Sequence {
		if !v.r.States[i].built && v.r.Set.Children[i].liveInput() != nil {
			v.buildChild(i)
		}
		state := &v.r.States[i]
		after := v.r.holdFor(v.r.Set.Children[i])
		for j := state.from; j < state.to; j++ {
			v.object(i, &v.r.objects[j], after)
		}
	}
}

// buildChild builds a child, and notes why it cannot be built.
func (v *walk) buildChild(i int) {
	v.r.build(i)
	v.takeFailures(i)
	if missing := v.r.States[i].missing; missing != nil { // with KeepWhileMissing it is built all the same
		v.note(i, missing)
	}
}

// takeFailures turns what failed for a child into changes.
func (v *walk) takeFailures(i int) {
	for _, err := range v.r.failures {
		v.note(i, err)
	}
	for _, wait := range v.r.waits {
		v.note(i, wait)
	}
	v.r.failures, v.r.waits = nil, nil
}

// note adds an error of a child without an object.
func (v *walk) note(i int, err error) {
	v.add(preview.Change{Kind: v.r.Kinds[i].GVK.GroupKind()}, err)
}

// add adds a change, and the error that keeps it from being made.
func (v *walk) add(c preview.Change, err error) {
	if wait, ok := errors.AsType[*owned.WaitingError](err); ok {
		c.Waits = wait.Error()
	} else if err != nil {
		c.Err, v.failed = err, true
	}
	v.changes = append(v.changes, c)
}

// object looks at one desired object. after names what it comes after and what is not ready, or is about to change.
func (v *walk) object(i int, d *owned.Declared, after string) {
	p, err := v.previewObject(i, d)
	if err != nil {
		p.Change = preview.Change{Kind: d.Kind.GVK.GroupKind(), Name: client.ObjectKeyFromObject(d.Object)}
	}
	d.Live = p.Live
	if forecast.Changes(&p.Change) && after != "" {
		p.After = after + " is ready"
	}
	if state := &v.r.States[i]; state.NotReady == "" && (err != nil || forecast.Changes(&p.Change) || !v.isReady(d) && !isUsableClaim(d)) {
		state.NotReady = d.Kind.Describe(d.Object)
	}
	v.add(p.Change, err)
}

func (v *walk) isReady(d *owned.Declared) bool {
	return d.Live == nil || d.Options.RunOnce || d.Kind.Ready(d.Live, d.Options.ReadyCondition) == nil
}

func (v *walk) previewObject(i int, d *owned.Declared) (apply.Previewed, error) {
	if d.Err != nil {
		return apply.Previewed{}, d.Err
	}
	if err := keepWhileMissing(v.r, d, &v.r.States[i]); err != nil {
		return apply.Previewed{}, err
	}
	return v.r.Set.Applier.Previews().Preview(v.r.ctx, v.r.owner, *d)
}

// pruned looks at what is not desired any more. Reconcile prunes nothing while a child fails.
func (v *walk) pruned() {
	after := ""
	if v.failed {
		after = "no child of " + v.r.owner.Reference.Kind + " " + v.r.owner.Reference.Name + " fails"
	}
	s := v.r.Set
	desired := DesiredNames{v.r.objects, v.r.unbuilt(), v.r.retains()}
	found, _, err := s.listWritten(v.r.ctx, v.r.owner)
	if err == nil {
		var former []written
		former, err = s.listFormer(v.r.ctx, v.r.owner)
		found = append(found, former...)
	}
	if err != nil {
		v.add(preview.Change{}, fmt.Errorf("find out what is not desired any more: %w", err))
		return
	}
	for _, w := range desired.without(found) {
		if w.object.GetDeletionTimestamp() != nil {
			continue
		}
		c := preview.Change{Kind: w.kind.GVK.GroupKind(), Name: client.ObjectKeyFromObject(w.object), Action: forecast.Delete, After: after}
		if s.Known().keeps(v.r.owner, w) {
			if m, marked := record.MarkOf(w.object, c.Kind); marked && m.Retained {
				continue
			}
			c.Action = forecast.Retain
		}
		forecast.SetEffects(&c, w.object)
		v.add(c, nil)
	}
}
