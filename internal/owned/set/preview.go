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

// Preview returns what the next [Set.Reconcile] would do to the children of obj. The result also has an entry for each child that is as
// desired. c must refuse all writes but dry runs. Preview builds the children as Reconcile does. It also previews a child that has to wait:
// its entry says what it waits for.
//
// The error is a mistake in the set. If something fails for one child, the error is in the entry of that child.
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

// walk collects the results of Preview for one owner.
type walk struct {
	r       *Reconciliation
	changes []preview.Change
	failed  bool // something fails for a child, so Reconcile would prune nothing
}

// children builds the children and previews their objects, in the same order as [Reconciliation.run].
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

// buildChild builds a child. If it cannot be built, buildChild adds an entry that says why.
func (v *walk) buildChild(i int) {
	v.r.build(i)
	v.takeFailures(i)
	if missing := v.r.States[i].missing; missing != nil { // with the option KeepWhileMissing, the child is built although an object is missing
		v.note(i, missing)
	}
}

// takeFailures adds an entry for each error that the Reconciliation has recorded for a child.
func (v *walk) takeFailures(i int) {
	for _, err := range v.r.failures {
		v.note(i, err)
	}
	for _, wait := range v.r.waits {
		v.note(i, wait)
	}
	v.r.failures, v.r.waits = nil, nil
}

// note adds an entry for an error of a child whose objects are not known. It has only the child's kind and the error.
func (v *walk) note(i int, err error) {
	v.add(preview.Change{Kind: v.r.Kinds[i].GVK.GroupKind()}, err)
}

// add adds an entry. err is the reason why the change would not be made, or nil.
func (v *walk) add(c preview.Change, err error) {
	if wait, ok := errors.AsType[*owned.WaitingError](err); ok {
		c.Waits = wait.Error()
	} else if err != nil {
		c.Err, v.failed = err, true
	}
	v.changes = append(v.changes, c)
}

// object previews one desired object. after names the objects after which it comes and that are not ready or would change. If there are
// none, after is empty.
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

// pruned adds an entry for each object that is not desired any more: it would be deleted or retained. If something fails for a child,
// Reconcile would prune nothing, and these entries say so.
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
