package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/feature"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/ownwrites"
	"github.com/opblocks/opblocks/internal/record"
	"github.com/opblocks/opblocks/internal/versions"
)

// Operation is what was done to an object, or what [ownedresources.Diff] found would be done.
type Operation string

const (
	// Unchanged: the live object is as desired. No request is sent.
	Unchanged Operation = "unchanged"
	// Created: the object was absent, and is created.
	Created Operation = "created"
	// Applied: the live object differs, and is applied.
	Applied Operation = "applied"
)

// Result is what [ownedresources.Apply] did to one object.
type Result struct {
	// Object is the live object. It may be the cache's own: read it, but do not modify it.
	Object client.Object
	// Operation is what was done.
	Operation Operation

	FromCache bool // Object is as the cache shows it, and not a later answer to a write of ours
}

// Applier applies objects. What it remembers saves requests and comparisons, and keeps it from repeating a recreation or
// a write loop.
type Applier struct {
	Kinds *owned.Kinds
	owned.Scopes
	Clock       clock.PassiveClock
	Writes      *ownwrites.Writes
	Versions    *versions.Epoch
	Children    *memory.Children
	Loops       *memory.NameLoops
	Recreations *memory.Recreations
	report.Reporter
}

// New returns an Applier that knows the built-in kinds. A set with a manager gives it the kinds of its API server.
func New() *Applier {
	m, v := report.NewMetrics(), &versions.Epoch{}
	return &Applier{
		Kinds: owned.BuiltIn, Clock: clock.RealClock{}, Writes: ownwrites.New(clock.RealClock{}),
		Versions: v, Children: memory.NewChildren(m, v), Loops: memory.NewNameLoops(m), Recreations: memory.NewRecreations(), Reporter: report.Reporter{Metrics: m},
	}
}

// ForgetOwner drops what is remembered of the children of an owner that is gone.
func (a *Applier) ForgetOwner(owner types.UID) {
	a.Loops.Forget(owner)
	a.Recreations.Forget(owner)
}

// WithoutCopy is the option of a read whose object may be the memory of the cache: nobody changes it.
var WithoutCopy = &client.GetOptions{UnsafeDisableDeepCopy: new(true)}

// Begin applies one object if needed. If there is none, it returns how to create it: see [Send] and [Applier.FinishCreation].
func (a *Applier) Begin(ctx context.Context, o *owned.Owner, child owned.Declared) (Result, *Creation, error) {
	object, full, err := child.Kind.Normalize(child.Object, child.Options)
	if err != nil {
		return Result{}, nil, err
	}
	return a.beginNormalized(ctx, o, child, object, full)
}

// applyNormalized creates or applies one object in the form that normalize returns.
func (a *Applier) applyNormalized(ctx context.Context, o *owned.Owner, child owned.Declared, object, full client.Object) (Result, error) {
	result, c, err := a.beginNormalized(ctx, o, child, object, full)
	if c == nil {
		return result, err
	}
	Send(ctx, c)
	return a.FinishCreation(ctx, c)
}

func (a *Applier) beginNormalized(ctx context.Context, o *owned.Owner, child owned.Declared, object, full client.Object) (Result, *Creation, error) {
	k := child.Kind
	object, generate := feature.WithoutGenerated(o, object, child.Options.Generate)
	full, _ = feature.WithoutGenerated(o, full, generate)
	buffer := owned.Buffers.Get().(*[]byte)
	defer owned.Buffers.Put(buffer)
	encoded, err := k.Comparer.AppendJSON((*buffer)[:0], object)
	if err != nil {
		return Result{}, nil, fmt.Errorf("%s: %w", k.Describe(object), err)
	}
	sent := len(encoded)
	if child.Binding != owned.ByReference { // the binding too decides whether the object is as desired
		encoded = append(encoded, byte(child.Binding))
	}
	*buffer = encoded
	live, fromCache, err := a.Read(ctx, o, k, object)
	if err != nil {
		return Result{}, nil, err
	}
	if live != nil && a.Children.IsVerified(o, live, encoded) {
		return Result{Object: live, Operation: Unchanged, FromCache: fromCache}, nil, nil
	}
	d := &owned.Desired{
		Kind: k, Object: object, Full: full, Sum: owned.SumOf(encoded[:sent]), Owner: o, Options: child.Options,
		Binding: child.Binding, Builder: child.Builder, Order: child.Order, Hold: child.Hold, Generate: generate, Reads: child.Reads,
	}
	if live == nil {
		c, err := a.prepareCreation(ctx, d)
		if err != nil {
			return Result{}, nil, err
		}
		return Result{}, c, nil
	}
	result, err := a.update(ctx, d, live)
	if err == nil && result.Operation == Unchanged {
		a.Children.SetVerified(o, live, encoded)
		result.FromCache = fromCache
	}
	return result, nil, err
}

// Read returns the live object from the cache, or the answer to our own last write if that is newer. It returns nil if
// there is none.
func (a *Applier) Read(ctx context.Context, o *owned.Owner, k *owned.Kind, obj client.Object) (live client.Object, fromCache bool, err error) {
	cached, name := k.Empty(), client.ObjectKeyFromObject(obj)
	err = o.Client.Get(ctx, name, cached, WithoutCopy)
	switch {
	case err == nil:
		live = a.Writes.Newer(cached)
		return live, live == cached, nil
	case apierrors.IsNotFound(err):
		return a.Writes.Unseen(cached, name), false, nil
	}
	return nil, false, fmt.Errorf("read %s: %w", k.Describe(obj), err)
}

// MaxCacheDelay is how far a cache may be behind. One that has not shown an object for longer will never show it.
const MaxCacheDelay = time.Minute

// UpdateUnseen goes on with an object that exists although the cache does not show it. Somebody has just created it, or
// the cache's selector leaves it out.
func (a *Applier) UpdateUnseen(ctx context.Context, d *owned.Desired, alreadyExists error) (Result, error) {
	live, err := d.ReadLive(ctx)
	if apierrors.IsNotFound(err) { // deleted in between: a lost race
		return Result{}, alreadyExists
	}
	if err != nil {
		return Result{}, fmt.Errorf("read %s, which exists but is not in the cache: %w", d, err)
	}
	result, err := a.update(ctx, d, live)
	if err == nil && a.Clock.Since(live.GetCreationTimestamp().Time) > MaxCacheDelay {
		err = &owned.NotCachedError{Kind: d.Kind.GVK.Kind, Name: client.ObjectKeyFromObject(live)}
	}
	return result, err
}

// maxSteps is more than the number of steps that follow each other for one object.
const maxSteps = 16

// update brings a live object of any kind to the desired state. It returns an error if the live object is not ours. Package plan
// decides what is done next, and package write sends it. If the API server refuses a request, such as a changed port of a Service,
// the code in refusal.go goes on.
func (a *Applier) update(ctx context.Context, d *owned.Desired, live client.Object) (Result, error) {
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

// learn finds out a fact that a plan needs.
func (a *Applier) learn(ctx context.Context, s *plan.State, need plan.Fact, p plan.Plan) (err error) {
	switch need {
	case plan.OwnerIsAlive:
		err = s.Owner.ConfirmAlive(ctx)
	case plan.FormerIsGone:
		if former, ok := errors.AsType[owned.FormerError](p.Err); ok {
			s.Gone, err = s.Owner.IsGone(ctx, former.Mark)
		}
	case plan.PaceOfWrites:
		s.Paced, s.Delay = p.Paths, a.slowDown(s.Desired, s.Live, p.Paths)
		if s.Delay == nil && p.Verb != plan.DoBind && s.Options.Recreate && !a.Recreations.Has(s.Desired, s.Live) {
			s.Delay = a.SlowDownByName(s.Owner, s.Kind, s.Live, memory.Recreation, s.Sum)
		}
	}
	s.Known[need] = err == nil
	return err
}

// execute does what was planned for a live object. It returns done as false if something else has to be done after it.
func (a *Applier) execute(ctx context.Context, s *plan.State, p plan.Plan) (result Result, done bool, err error) {
	d := s.Desired
	if isCovered := p.Verb == plan.DoNothing || p.Verb == plan.DoRefuse; isCovered && len(p.Differences) > 0 && !plan.ContainsAll(s.Rewritten, p.Differences) {
		a.Children.SetRewritten(d.Kind.GVK.Kind, s.Live.GetUID(), p.Differences) // an earlier process has recorded them
	}
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
	case plan.DoBind:
		if s.Live, err = a.Unreference(ctx, d.Owner, d.Kind, s.Live, d.Binding); err == nil {
			a.Children.CountWrite(d, s.Live.GetUID(), p.Paths, a.Clock.Now())
			a.Report(ctx, d.Owner, d.Kind, s.Live, report.OutcomeApplied, p.Paths)
		}
		return Result{}, false, err
	case plan.DoExpand: // if the API server would refuse other changes, the object is applied, which returns that refusal
		err := a.expandVolumes(ctx, d, s.Live)
		s.Known[plan.RestIsApplied] = err == nil
		return Result{}, false, err
	}
	result, err = a.applyDesired(ctx, s, p)
	return result, true, err
}

// applyDesired applies an object, and does what follows from the answer.
func (a *Applier) applyDesired(ctx context.Context, s *plan.State, p plan.Plan) (Result, error) {
	d, last := s.Desired, record.LastAppliedOf(s.Live)
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
		return Result{}, write.WithSizeRemedy(err)
	}
	a.Children.CountWrite(d, answer.GetUID(), p.Paths, a.Clock.Now())
	answer = a.remember(ctx, d, answer)
	paths := p.Paths
	if len(p.Differences) == 0 { // the desired object has changed, in a way that the live one already covers
		paths = ""
	}
	a.Report(ctx, d.Owner, d.Kind, answer, report.OutcomeApplied, paths)
	if err := plan.SilentRefusal(d, answer); err != nil {
		return Result{}, a.Refuse(ctx, d, err)
	}
	return Result{Object: answer, Operation: Applied}, nil
}

// remember keeps the answer to a write until the cache shows it. It also keeps the rewritten differences. It returns
// the live object.
func (a *Applier) remember(ctx context.Context, d *owned.Desired, answer client.Object) client.Object {
	differences := d.Kind.Comparer.Differences(d.Object, answer)
	answer = write.RecordRewritten(ctx, d, answer, owned.Fingerprint(differences))
	a.Writes.Record(answer)
	a.Recreations.End(d)
	a.Children.SetRewritten(d.Kind.GVK.Kind, answer.GetUID(), differences)
	return answer
}

// All creates or applies the objects. It returns one result per object, and the errors of all of them.
func All(ctx context.Context, a *Applier, o *owned.Owner, all []owned.Declared) ([]Result, error) {
	results, errs := make([]Result, len(all)), make([]error, len(all))
	for rank := range owned.Ranks {
		creations := map[int]*Creation{}
		for i, d := range all {
			if owned.RankOf(d.Kind.GVK.Kind) == rank {
				results[i], creations[i], errs[i] = a.Begin(ctx, o, d)
			}
		}
		maps.DeleteFunc(creations, func(_ int, c *Creation) bool { return c == nil })
		indices := slices.Sorted(maps.Keys(creations))
		pending := make([]*Creation, len(indices))
		for j, i := range indices {
			pending[j] = creations[i]
		}
		Send(ctx, pending...)
		for _, i := range indices {
			results[i], errs[i] = a.FinishCreation(ctx, creations[i])
		}
	}
	return results, errors.Join(errs...)
}
