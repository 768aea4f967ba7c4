package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
	"github.com/opblocks/opblocks/reconcile/external/internal/claims"
)

// Step keeps the things of a [Resource] as desired. Make it with [New], and give it a finalizer: [reconcile.NamedStep.Finalizer]. Its
// conditions have these reasons, or a reason of [Refused]:
//
//   - RateLimited, Unreachable and Busy, while the server must not be called;
//   - Claimed, if the key belongs to another object, and AlreadyExists, if it belongs to somebody else;
//   - Creating, while the API does not show a created thing, and Deleting, while it still shows a thing that is being deleted;
//   - CreationUnknown, if the answer to a creation was lost and it cannot be found out whether the thing exists;
//   - InvalidKey, if the key is empty, and InvalidInterval, a success, if [IntervalAnnotation] is not a duration;
//   - NotFound, if the thing does not exist and the step may not create it;
//   - Publishing, while the Secret lacks a value;
//   - Panicked, if a function of the resource panicked, and NotReturned, if a function has not returned although its context has ended.
type Step[T client.Object, S any] struct {
	Resource[T, S]

	invalid error
	synced  memory
	rounds  rounds[S]
	claims  claims.Table
	calls   *calls.Calls
	plans   *calls.Calls // the calls of plans, which wait for the quota as long as needed
	secrets publisher[T]
}

// New returns a step for a resource. If a field is missing or has an impossible value, the setup of the reconciler returns an error
// that names it.
func New[T client.Object, S any](r Resource[T, S]) *Step[T, S] {
	invalid := r.validate()
	r.Every, r.Timeout = cmp.Or(r.Every, defaultEvery), cmp.Or(r.Timeout, defaultTimeout)
	r.EveryAtLeast = cmp.Or(r.EveryAtLeast, min(r.Every, defaultEveryAtLeast))
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	s := &Step[T, S]{
		Resource: r, invalid: invalid,
		calls: calls.New(r.Quota, r.Concurrency, r.Timeout, r.Clock.Now),
		plans: calls.New(nil, 0, r.Timeout, r.Clock.Now),
	}
	if r.Publish != nil {
		s.secrets.enable()
	}
	return s
}

// SetName sets the name of the step in the metrics and in the Secrets of [Resource.Publish]. [reconcile.Named] calls it.
func (s *Step[T, S]) SetName(name string) {
	s.calls.SetName(name)
	if s.secrets.set != nil {
		s.secrets.set.SetName(name)
	}
}

// SetFormerNames tells the step which names it had in earlier releases. Package reconcile calls it with the FormerNames of the step.
func (s *Step[T, S]) SetFormerNames(names ...string) {
	if s.secrets.set != nil {
		s.secrets.set.SetFormerNames(names...)
	}
}

// Watched implements [reconcile.Watcher]. If the step publishes Secrets, it watches Secrets. Otherwise it watches nothing.
func (s *Step[T, S]) Watched() []client.Object { return s.secrets.watched() }

// SetupWithBuilder implements [reconcile.Watcher]. It registers the metrics, and returns an error if a field of the resource is missing or
// has an impossible value.
func (s *Step[T, S]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if s.invalid != nil {
		return s.invalid
	}
	if err := s.calls.Measure(ctrlmetrics.Registry); err != nil {
		return err
	}
	return s.secrets.setUp(mgr, b)
}

// Reconcile creates or updates the desired things, and deletes the things under former keys. If nothing has changed, it does not call the
// API.
func (s *Step[T, S]) Reconcile(ctx context.Context, c client.Client, obj T) (err error) {
	defer func() { err = calls.WithoutQueries(err) }()
	defer calls.Recover(ctx, "a function of the resource", &err)
	if err := s.mistake(obj); err != nil {
		return err
	}
	p, name := s.pass(c, obj, s.calls), client.ObjectKeyFromObject(obj)
	visit := p.outside.visit
	if err := p.setWanted(ctx); err != nil {
		s.rounds.forget(name)
		return err
	}
	last, now, published := s.synced.get(name, obj.GetUID()), s.Clock.Now(), p.publishing().isPublished(ctx)
	if due := last.at.Add(p.wanted.untilNext(last.behind)); p.isAsAfter(last) && now.Before(due) && published && !reconcile.Requested(ctx) {
		p.ledger.store()      // writes the record, because a former key may be desired again
		s.calls.EndWait(name) // the object does not wait any more, if it did
		return p.success(due.Sub(now))
	}
	visit.SetUrgent(reconcile.Requested(ctx) || p.isChanged() || !published)
	p.round = s.rounds.get(name, &round[S]{
		of: p.present(), request: obj.GetAnnotations()[reconcile.RequestedAnnotation],
		keys: p.ledger.keys, begun: now, done: map[string]*candidate[S]{},
	})
	visit.SetGoesOn(len(p.round.done) > 0)
	p.behind = p.behind || p.round.behind
	before := keysOf(p.ledger.all)
	err = visit.Do(ctx, p.sync)
	s.rounds.forget(name)
	if _, waits := errors.AsType[reconcile.Waiter](err); waits && visit.IsPutOff() {
		p.round.behind = p.behind
		s.rounds.set(name, p.round)
	}
	if rests(err) {
		p.ledger.record.Generation = obj.GetGeneration()
	}
	p.ledger.store()
	p.ledger.unclaim(before...) // the status still has the keys that were in the record before
	if err != nil {
		s.synced.forget(name)
		return err
	}
	behind, seen := p.behind && !last.behind, p.present() // after an update that was not visible, the thing is observed only one more time
	seen.at, seen.behind = p.round.begun, behind
	s.synced.set(name, seen)
	after := p.wanted.untilNext(behind) // counted from the begin of the round, when its first things were observed
	return p.success(max(after-s.Clock.Since(p.round.begun), min(after, firstLook)))
}

// Finalize deletes the things of obj, unless Retain keeps them. It succeeds when the API does not show them any more.
func (s *Step[T, S]) Finalize(ctx context.Context, c client.Client, obj T) (err error) {
	defer func() { err = calls.WithoutQueries(err) }()
	defer calls.Recover(ctx, "a function of the resource", &err)
	if err := s.mistake(obj); err != nil {
		return err
	}
	p := s.pass(c, obj, s.calls)
	p.outside.visit.SetUrgent(true)
	if !p.wanted.retains() {
		err := p.outside.visit.Do(ctx, p.dropper().dropAll)
		p.ledger.store()
		if err != nil {
			return err
		}
	}
	s.Forget(client.ObjectKeyFromObject(obj))
	return nil
}

// Forget drops everything that the step remembers of an object. The reconciler calls it when the object is gone, even if its cleanup
// was given up.
func (s *Step[T, S]) Forget(name types.NamespacedName) {
	s.synced.forget(name)
	s.rounds.forget(name)
	s.claims.Keep(name, nil)
	s.secrets.forget(name)
	s.calls.EndWait(name)
}

// StatusNotWritten makes the next pass observe again, because the changes of [Resource.Observed] to the status are lost. The reconciler
// calls it.
func (s *Step[T, S]) StatusNotWritten(name types.NamespacedName) {
	s.synced.forget(name)
	s.rounds.forget(name)
}

// mistake returns the mistake in the resource, or in the result of its function Record for an object.
func (s *Step[T, S]) mistake(obj T) error {
	if s.invalid != nil || s.Record(obj) != nil {
		return s.invalid
	}
	function := runtime.FuncForPC(reflect.ValueOf(s.Record).Pointer()).Name()
	return ctrlreconcile.TerminalError(fmt.Errorf("the function Record (%s) returns nil: return a pointer to a field of the status, such as &obj.Status.Account", path.Base(function)))
}

// pass returns a pass. At first, its desired keys are the recorded keys.
func (s *Step[T, S]) pass(c client.Client, obj T, calls *calls.Calls) *pass[T, S] {
	r := &s.Resource
	s.calls.SetKind(obj.GetObjectKind().GroupVersionKind().Kind)
	visit, record := calls.Visit(obj, s.server(obj)), s.Record(obj)
	p := &pass[T, S]{
		resource: r, obj: obj, secrets: &s.secrets,
		outside:  outside[T, S]{resource: r, client: c, obj: obj, visit: visit},
		ledger:   ledger[T, S]{resource: r, obj: obj, record: record, visit: visit, claims: &s.claims},
		claimant: claimant[T, S]{resource: r, reader: c, obj: obj},
		wanted:   wanted{policy: s.policyOf(obj)},
	}
	p.ledger.keys, p.ledger.all = keysOf(record.present()), record.all()
	if s.Save != nil {
		p.ledger.saved = *record.DeepCopy()
	}
	p.wanted.every, p.wanted.invalidEvery = s.interval(obj)
	return p
}

// Waiting returns the objects to reconcile after obj has changed or is gone, because they may have waited for one of its keys. For each
// group of these keys, these are the objects that have a key of the group, and the oldest object that wants one. The other objects that
// want a key of the group would only wait for the oldest one. If Others returns an error, Waiting logs it. Give Waiting to
// [reconcile.Watching].
func (s *Step[T, S]) Waiting(ctx context.Context, c client.Reader, obj T) []ctrl.Request {
	one := claimant[T, S]{resource: &s.Resource, reader: c, obj: obj}
	return one.waiting(ctx)
}
