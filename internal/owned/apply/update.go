package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// maxSteps is the largest number of plans for one object in one reconcile. An object never needs as many.
const maxSteps = 16

// update brings a live object to the desired state. Package plan decides what is done next, and package write sends it. If the live object
// is not ours, update returns an error. If the API server refuses a request, such as a changed port of a Service, the code in refusal.go
// takes over.
func (a *Applier) update(ctx context.Context, d *owned.Desired, live client.Object) (Result, error) {
	if err := leaveGrownClaim(ctx, d, live); err != nil {
		return Result{}, err
	}
	s := &plan.State{Desired: d, Live: live, Known: map[plan.Fact]bool{}}
	for range maxSteps {
		known, _ := a.Children.DetailsOf(s.Live.GetUID())
		s.Rewritten = known.Rewritten
		p := plan.Decide(plan.Stages, s)
		if need, missing := s.Missing(p); missing {
			if err := a.learn(ctx, s, need, p); err != nil {
				return Result{}, err
			}
			continue
		}
		d.Former = cmp.Or(p.Adopts, d.Former)
		if result, done, err := a.execute(ctx, s, p); done || err != nil {
			return result, err
		}
	}
	return Result{}, fmt.Errorf("%s changes while it is applied", d)
}

// learn finds out a [plan.Fact] that a plan needs before it is executed.
func (a *Applier) learn(ctx context.Context, s *plan.State, need plan.Fact, p plan.Plan) error {
	if need != plan.PaceOfWrites {
		return ask(ctx, s, need, p)
	}
	s.Paced, s.Delay, s.Known[need] = p.Paths, a.slowDown(s.Desired, s.Live, p.Paths), true
	if s.Delay == nil && p.Verb != plan.DoBind && p.Verb != plan.DoTakeBack && s.Options.Recreate && !a.Recreations.Has(s.Desired, s.Live) {
		s.Delay = a.SlowDownByName(s.Owner, s.Kind, s.Live, memory.Recreation, s.Sum)
	}
	return nil
}

// ask finds out a [plan.Fact] that does not depend on the memory of this process.
func ask(ctx context.Context, s *plan.State, need plan.Fact, p plan.Plan) (err error) {
	//exhaustive:enforce
	switch need {
	case plan.OwnerIsAlive:
		err = s.Owner.ConfirmAlive(ctx)
	case plan.FormerIsGone:
		if former, ok := errors.AsType[owned.FormerError](p.Err); ok {
			s.Gone, err = s.Owner.IsGone(ctx, former.Mark)
		}
	case plan.BuiltByOne:
		err = requireOneBuilder(ctx, s.Desired)
	case plan.PaceOfWrites: // learn and foresee set this fact themselves
	}
	s.Known[need] = err == nil
	return err
}

// leaveGrownClaim removes the storage request from the desired PersistentVolumeClaim if another writer has let the live claim grow: the
// live request is larger, and our field manager does not own it. If we sent the live request, we would own it too, and the next apply of
// the other manager would conflict. If our field manager owns the live request, our request is sent even if it is smaller: the API server
// accepts a smaller request after a failed expansion.
func leaveGrownClaim(ctx context.Context, d *owned.Desired, live client.Object) error {
	grown, err := feature.IsGrownClaim(d, live)
	if !grown || err != nil {
		return err
	}
	if len(live.GetManagedFields()) == 0 { // the cache may be configured to drop managed fields
		if live, err = d.ReadLive(ctx); err != nil {
			return fmt.Errorf("read %s: %w", d, err)
		}
	}
	if !plan.RequestsStorage(d, live) {
		d.Object = feature.WithoutRequest(d.Object)
	}
	return nil
}

// requireOneBuilder returns an error if another step builds the object too.
func requireOneBuilder(ctx context.Context, d *owned.Desired) error {
	pass := passcontext.FromContext(ctx)
	if pass == nil {
		return nil
	}
	running, other := pass.OtherBuilderOf(ctx, d.Kind.GVK.GroupKind(), d.Key())
	if other == "" {
		return nil
	}
	return fmt.Errorf("%s is built by two steps, %q and %q, which would overwrite each other: build it in one of them, or give the objects different names", d, running, other)
}

// execute executes the plan for a live object. If another plan has to be made afterwards, done is false.
func (a *Applier) execute(ctx context.Context, s *plan.State, p plan.Plan) (result Result, done bool, err error) {
	d := s.Desired
	if isCovered := p.Verb == plan.DoNothing || p.Verb == plan.DoRefuse; isCovered && len(p.Differences) > 0 && !plan.ContainsAll(s.Rewritten, p.Differences) {
		a.Children.SetRewritten(d.Kind.GVK.Kind, s.Live.GetUID(), p.Differences) // the differences that an earlier process has recorded in the object
	}
	//exhaustive:enforce
	switch p.Verb {
	case plan.DoNothing:
		return Result{Object: s.Live, Operation: Unchanged}, true, nil
	case plan.DoReturn:
		if p.IsOurs {
			result.Object = s.Live
		}
		return result, true, p.Err
	case plan.DoCollect:
		orphan, _ := errors.AsType[owned.OrphanError](p.Err)
		return Result{}, true, a.deleteOrphan(ctx, d, s.Live, orphan)
	case plan.DoRemove:
		if _, err := a.RemoveMarked(ctx, d.Owner, d.Kind, s.Live); err != nil {
			return Result{}, true, err
		}
		former, _ := errors.AsType[owned.FormerError](p.Err)
		return Result{}, true, former.WaitingError
	case plan.DoRefuse:
		return Result{}, true, a.Refuse(ctx, d, p.Err)
	case plan.DoBind, plan.DoTakeBack:
		if s.Live, err = a.rebind(ctx, d.Owner, d.Kind, s.Live, d.Binding, cmp.Or(p.Adopts, d.Owner.Reference.UID)); err == nil {
			a.Children.CountWrite(d, s.Live.GetUID(), p.Paths, a.Clock.Now())
			a.Report(ctx, d.Owner, d.Kind, s.Live, report.OutcomeApplied, p.Paths)
		}
		return Result{}, false, err
	case plan.DoExpand: // nil means that the API server would refuse other changes: the next plan applies the object, and returns that refusal
		err := a.expandVolumes(ctx, d, s.Live)
		s.Expanded = err == nil
		return Result{}, false, err
	case plan.DoApply:
	}
	result, err = a.applyDesired(ctx, s, p)
	return result, true, err
}

// applyDesired applies an object, and handles the answer.
func (a *Applier) applyDesired(ctx context.Context, s *plan.State, p plan.Plan) (Result, error) {
	d, last := s.Desired, record.LastAppliedOf(s.Live)
	if err := a.Children.Refusal(d, s.Live, a.Clock.Now()); err != nil {
		return Result{}, err
	}
	if known, _ := a.Children.DetailsOf(s.Live.GetUID()); known.Admitted != nil {
		d.Admitted = plan.StillAdmitted(d, s.Live, known.Admitted)
	}
	d.Rewritten, d.ResetsOrder = last.Rewritten, d.Order == 0 && record.OrderOf(s.Live) != 0
	live, err := write.TakeOver(ctx, d, s.Live)
	if err != nil {
		return Result{}, err
	}
	if live, err = write.FillGenerated(ctx, d, live); err != nil {
		return Result{}, err
	}
	answer, before, err := write.ApplyTo(ctx, d, live)
	if err == nil {
		answer, err = write.Reclaim(ctx, d, last, before, answer)
	}
	switch {
	case plan.IsLiveUntypable(err):
		answer, err = write.ByPatch(ctx, d, last, err)
	case err != nil:
		answer, err = a.RecoverFrom(ctx, d, err)
	}
	if err != nil {
		err = plan.SeeUserPatch(d, before, err)
		unasked := d.Trial != nil && d.Trial.Err != nil && !plan.IsInvalid(d.Trial.Err) // the dry run failed for a reason that may pass, such as a used up quota
		if plan.IsInvalid(err) && !unasked {
			a.Children.SetRefused(d, before, a.Clock.Now(), err)
		}
		return Result{}, write.WithSizeRemedy(err)
	}
	a.Children.SetAccepted(answer.GetUID())
	a.Children.SetAdmitted(answer.GetUID(), d.Admitted)
	a.Children.CountWrite(d, answer.GetUID(), p.Paths, a.Clock.Now())
	answer = a.remember(ctx, d, answer)
	paths := p.Paths
	if len(p.Differences) == 0 { // only the desired object has changed, and the live object already is like that
		paths = ""
	}
	a.Report(ctx, d.Owner, d.Kind, answer, report.OutcomeApplied, paths)
	if err := plan.SilentRefusal(d, answer); err != nil {
		return Result{}, a.Refuse(ctx, d, err)
	}
	return Result{Object: answer, Operation: Applied}, nil
}

// remember keeps the answer to a write until the cache shows it, and the differences between the answer and what was sent. It returns the
// live object.
func (a *Applier) remember(ctx context.Context, d *owned.Desired, answer client.Object) client.Object {
	differences := d.Kind.Comparer.Differences(d.Object, answer)
	answer = write.RecordRewritten(ctx, d, answer, owned.Fingerprint(differences))
	a.Writes.Record(answer)
	a.Recreations.End(d)
	a.Children.SetRewritten(d.Kind.GVK.Kind, answer.GetUID(), differences)
	return answer
}
