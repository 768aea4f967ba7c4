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

	name    string
	invalid error
	synced  memory
	gate    gate
	plans   gate // the servers, as plans see them; plans wait for the quota as long as it takes
	secrets publisher[T]
}

// New returns a step for a resource. If a field is missing or impossible, the setup of the reconciler returns an error that names it.
func New[T client.Object, S any](r Resource[T, S]) *Step[T, S] {
	invalid := r.validate()
	r.Every, r.Timeout = cmp.Or(r.Every, defaultEvery), cmp.Or(r.Timeout, defaultTimeout)
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	s := &Step[T, S]{Resource: r, invalid: invalid, gate: gate{quota: r.Quota, concurrency: r.Concurrency}}
	if r.Publish != nil {
		s.secrets.enable()
	}
	return s
}

// SetName names the step. Package reconcile calls it with the name of the step, before the first use. The Secrets of [Resource.Publish] carry the
// name.
func (s *Step[T, S]) SetName(name string) {
	s.name = name
	if s.secrets.set != nil {
		s.secrets.set.SetName(name)
	}
}

// SetFormerNames tells the step which names it had in earlier releases. Package reconcile calls it with the names of the option FormerNames.
func (s *Step[T, S]) SetFormerNames(names ...string) {
	if s.secrets.set != nil {
		s.secrets.set.SetFormerNames(names...)
	}
}

// Watched implements [reconcile.Watcher]. The step watches Secrets, if it publishes some, and else nothing.
func (s *Step[T, S]) Watched() []client.Object { return s.secrets.watched() }

// SetupWithBuilder implements [reconcile.Watcher]. It returns an error if a field of the resource is missing or impossible.
func (s *Step[T, S]) SetupWithBuilder(mgr ctrl.Manager, b *ctrl.Builder) error {
	if s.invalid != nil {
		return s.invalid
	}
	return s.secrets.setUp(mgr, b)
}

// Reconcile creates or updates the thing of obj, and deletes what it had under former keys. If nothing has changed, it does not call the
// API.
func (s *Step[T, S]) Reconcile(ctx context.Context, c client.Client, obj T) error {
	if s.invalid != nil {
		return s.invalid
	}
	p := s.pass(c, obj)
	if err := p.setWanted(ctx); err != nil {
		return err
	}
	last, now, published := s.synced.get(obj.GetUID()), s.Clock.Now(), publishing[T, S]{p}.isPublished(ctx)
	if p.isAsAfter(last) && now.Before(last.due) && published && !reconcile.Requested(ctx) {
		return reconcile.Success("", last.due.Sub(now), "%s", p.success())
	}
	p.visit.urgent = reconcile.Requested(ctx) || p.isChanged() || !published
	if err := p.atServer(ctx, p.sync); err != nil {
		return err
	}
	p.record.Generation = obj.GetGeneration()
	s.synced.set(obj.GetUID(), synced{generation: obj.GetGeneration(), version: p.version, policy: p.policy, due: s.Clock.Now().Add(s.Every)})
	return reconcile.Success("", s.Every, "%s", p.success())
}

// setWanted sets the key and the version.
func (p *pass[T, S]) setWanted(ctx context.Context) (err error) {
	if p.Key != nil {
		p.key = p.Key(p.obj)
	}
	if p.key == "" && p.Identity == ByKey {
		return reconcile.Stalled(ReasonInvalidKey, errors.New("the key is empty"))
	}
	if p.Version != nil {
		p.version, err = p.Version(ctx, p.client, p.obj)
	}
	return err
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
	s.secrets.forget(obj.GetUID())
	return nil
}

func (s *Step[T, S]) pass(c client.Client, obj T) *pass[T, S] {
	p := &pass[T, S]{Step: s, policy: s.policyOf(obj), client: c, obj: obj, record: s.Record(obj)}
	p.visit.gate, p.visit.now = &s.gate, s.Clock.Now
	if s.Server != nil {
		p.visit.server = s.Server(obj)
	}
	return p
}
