package external

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
)

// Step keeps a [Resource] as desired. Make it with [New], and give it the option [reconcile.Finalizer].
type Step[T client.Object, S any] struct {
	Resource[T, S]

	invalid error
	synced  memory
	claims  claims
	gate    gate
}

// New returns a step for a resource. If a field is missing or impossible, the setup of the reconciler returns an error that names it.
func New[T client.Object, S any](r Resource[T, S]) *Step[T, S] {
	invalid := r.validate()
	r.Every, r.Timeout = cmp.Or(r.Every, defaultEvery), cmp.Or(r.Timeout, defaultTimeout)
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	return &Step[T, S]{Resource: r, invalid: invalid, gate: gate{quota: r.Quota, concurrency: r.Concurrency}}
}

// Watched implements [reconcile.Watcher]. The step itself watches nothing.
func (s *Step[T, S]) Watched() []client.Object { return nil }

// SetupWithBuilder implements [reconcile.Watcher]. It returns an error if a field of the resource is missing or impossible.
func (s *Step[T, S]) SetupWithBuilder(ctrl.Manager, *ctrl.Builder) error { return s.invalid }

// Reconcile creates or updates what is desired, and deletes what obj had under former keys. If nothing has changed, it does not call the API.
func (s *Step[T, S]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	if s.invalid != nil {
		return s.invalid
	}
	p := s.pass(c, obj)
	if p.keys = s.keysOf(obj); slices.Contains(p.keys, "") && s.Identity == ByKey {
		return reconcile.Stalled(ReasonInvalidKey, errors.New("the key is empty"))
	}
	if s.Version != nil {
		var err error
		if p.version, err = s.Version(ctx, c, obj); err != nil {
			return err
		}
	}
	last, now := s.synced.get(obj.GetUID()), s.Clock.Now()
	reason, message := p.success()
	if p.isAsAfter(last) && now.Before(last.due) && !reconcile.Requested(ctx) {
		return reconcile.Success(reason, last.due.Sub(now), "%s", message)
	}
	p.visit.urgent = reconcile.Requested(ctx) || p.isChanged()
	before := keysOf(p.all)
	err := p.visit.during(ctx, p.sync)
	if err == nil {
		p.record.Generation = obj.GetGeneration()
	}
	p.store()
	p.unclaim(before...) // the status is not yet written
	if err != nil {
		return err
	}
	s.synced.set(obj.GetUID(), synced{generation: obj.GetGeneration(), version: p.version, due: s.Clock.Now().Add(s.Every)})
	reason, message = p.success()
	return reconcile.Success(reason, s.Every, "%s", message)
}

// Finalize deletes what belongs to obj, unless it is retained. It succeeds when the API does not show it any more.
func (s *Step[T, S]) Finalize(ctx context.Context, c client.Client, obj T) error {
	if s.invalid != nil {
		return s.invalid
	}
	p := s.pass(c, obj)
	p.visit.urgent = true
	if !p.retains() {
		err := p.visit.during(ctx, p.dropAll)
		p.store()
		if err != nil {
			return err
		}
	}
	s.synced.forget(obj.GetUID())
	s.claims.keep(obj.GetUID(), nil)
	return nil
}

// keysOf returns the keys of what is desired.
func (s *Step[T, S]) keysOf(obj T) []string {
	switch {
	case s.Keys != nil:
		return s.Keys(obj)
	case s.Key != nil:
		return []string{s.Key(obj)}
	}
	return []string{""} // with ByID and ByToken
}

// pass returns a pass whose desired keys are the recorded ones.
func (s *Step[T, S]) pass(c client.Client, obj T) *pass[T, S] {
	p := &pass[T, S]{claimant: claimant[T, S]{Step: s, reader: c, obj: obj}, client: c, record: s.Record(obj)}
	p.keys, p.all = keysOf(p.record.present()), p.record.all()
	if s.Save != nil {
		p.saved = *p.record.DeepCopy()
	}
	p.visit.gate, p.visit.now, p.visit.timeout = &s.gate, s.Clock.Now, s.Timeout
	if s.Server != nil {
		p.visit.server = s.Server(obj)
	}
	return p
}
