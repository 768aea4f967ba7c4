package external

import (
	"cmp"
	"context"
	"errors"

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

// Reconcile creates or updates the thing of obj, and deletes what it had under former keys. If nothing has changed, it does not call the
// API.
func (s *Step[T, S]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	if s.invalid != nil {
		return s.invalid
	}
	p := s.pass(c, obj)
	if s.Key != nil {
		p.key = s.Key(obj)
	}
	if p.key == "" && s.Identity == ByKey {
		return reconcile.Stalled(ReasonInvalidKey, errors.New("the key is empty"))
	}
	if s.Version != nil {
		var err error
		if p.version, err = s.Version(ctx, c, obj); err != nil {
			return err
		}
	}
	last, now := s.synced.get(obj.GetUID()), s.Clock.Now()
	if p.isAsAfter(last) && now.Before(last.due) && !reconcile.Requested(ctx) {
		p.record.Generation = obj.GetGeneration() // the status patch of that pass may have been refused
		return reconcile.Success("", last.due.Sub(now), "%s", p.success())
	}
	p.visit.urgent = reconcile.Requested(ctx) || p.isChanged()
	if err := p.atServer(ctx, p.sync); err != nil {
		return err
	}
	p.record.Generation = obj.GetGeneration()
	s.synced.set(obj.GetUID(), synced{generation: obj.GetGeneration(), version: p.version, due: s.Clock.Now().Add(s.Every)})
	return reconcile.Success("", s.Every, "%s", p.success())
}

// Finalize deletes what belongs to obj, unless it is retained. It succeeds when the API does not show it any more.
func (s *Step[T, S]) Finalize(ctx context.Context, c client.Client, obj T) error {
	if s.invalid != nil {
		return s.invalid
	}
	p := s.pass(c, obj)
	p.visit.urgent = true
	if !p.retains() {
		if err := p.atServer(ctx, p.dropAll); err != nil {
			return err
		}
	}
	s.synced.forget(obj.GetUID())
	return nil
}

func (s *Step[T, S]) pass(c client.Client, obj T) *pass[T, S] {
	p := &pass[T, S]{Step: s, client: c, obj: obj, record: s.Record(obj)}
	p.visit.gate, p.visit.now = &s.gate, s.Clock.Now
	if s.Server != nil {
		p.visit.server = s.Server(obj)
	}
	return p
}
