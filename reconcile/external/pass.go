package external

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile"
	"github.com/opblocks/opblocks/reconcile/external/internal/calls"
)

// pass is one pass over an object.
type pass[T client.Object, S any] struct {
	claimant[T, S]
	things
	policy
	client  client.Client
	record  *Record
	saved   Record // as Save has got it
	version string // what is desired
	seen    S      // what was observed last under a desired key
	behind  bool   // the API may not show the present state yet
	visit   *calls.Visit
	round   *round[S]

	every        time.Duration // the interval of the object
	invalidEvery bool          // the annotation has no interval
}

// isAsAfter reports whether the object is as it was after a pass that succeeded.
func (p *pass[T, S]) isAsAfter(last synced) bool {
	isCurrent := p.areConfirmed() && !p.record.isIssuing() && (p.record.Version == p.version || !p.mayUpdate())
	return last.generation == p.obj.GetGeneration() && last.version == p.version && last.policy == p.policy && (isCurrent || p.observesOnly())
}

// untilNext returns the time until the next observation. If the API was behind, it is looked at once more: what [Resource.Observed] was told is
// of the past.
func (p *pass[T, S]) untilNext(behind bool) time.Duration {
	if behind {
		return min(firstLook, p.every)
	}
	return p.every
}

// isChanged reports whether a person has changed what is desired, or a thing has yet to be created. All other passes are polls.
func (p *pass[T, S]) isChanged() bool {
	return p.record.Generation != p.obj.GetGeneration() || p.mayCreate() && slices.ContainsFunc(p.keys, p.isMissing) ||
		p.mayUpdate() && p.record.Version != p.version
}

// success returns the outcome of a pass after which all is as desired. The next one is a poll.
func (p *pass[T, S]) success(after time.Duration) error {
	reason, message := "", p.names(p.keys)+" is as desired"
	switch {
	case len(p.keys) == 0:
		message = "nothing is desired"
	case p.Succeeded != nil:
		reason, message = p.Succeeded(p.obj)
	case p.observesOnly():
		message = p.names(p.keys) + " is observed, and not changed"
	case !p.mayUpdate():
		message = p.names(p.keys) + " exists, and is not changed"
	}
	if p.invalidEvery {
		reason = reasonInvalidInterval
		message += fmt.Sprintf("; the annotation %s is not a duration such as 30m or 2h, so it is observed every %v", IntervalAnnotation, p.every)
	}
	return reconcile.LowPriority(reconcile.Success(reason, after, "%s", message))
}

// names returns the name of what is recorded under some keys.
func (p *pass[T, S]) names(keys []string) string {
	switch len(keys) {
	case 0:
		return ""
	case 1:
		only, _ := p.get(keys[0])
		return only.String()
	}
	first, _ := p.get(keys[0])
	return fmt.Sprintf("%s, with %d more,", first, len(keys)-1)
}

// sync makes the things as desired.
func (p *pass[T, S]) sync(ctx context.Context) error {
	if p.observesOnly() {
		return p.look(ctx)
	}
	if err := p.claim(ctx); err != nil { // before Desired, which may send a request: many objects may wait for one
		return err
	}
	var desired S
	if len(p.keys) > 0 {
		var err error
		if desired, err = p.Desired(ctx, p.client, p.obj); err != nil {
			return err
		}
	}
	for _, observed := range p.round.observed() { // each pass has another copy of the object
		p.tell(observed)
	}
	found, rest, err := p.find(ctx, desired)
	if err != nil {
		return err
	}
	if p.Recreate {
		if err := (dropping[T, S]{p}).dropFormer(ctx); err != nil {
			return err
		}
	}
	a := applier[T, S]{pass: p, found: found, desired: desired, isPart: rest != nil}
	if err := a.apply(ctx); err != nil {
		return err
	}
	if p.round.mark(found...); rest != nil {
		return rest
	}
	if err := (publishing[T, S]{p}).publish(ctx); err != nil {
		return err
	}
	if len(p.former()) > 0 {
		if err := (dropping[T, S]{p}).dropFormer(ctx); err != nil {
			return err
		}
		if err := p.letGo(ctx); err != nil {
			return err
		}
	}
	return p.ready(desired)
}

// look observes the things, and does nothing else.
func (p *pass[T, S]) look(ctx context.Context) error {
	for _, observed := range p.round.observed() { // each pass has another copy of the object
		p.tell(observed)
	}
	for i, key := range p.round.open() {
		if err := p.visit.Next(ctx, i == 0); err != nil {
			return err
		}
		ref, _ := p.get(key)
		observed, err := p.observe(ctx, ref)
		switch {
		case errors.Is(err, ErrNotFound):
			return p.notFound(ref)
		case err != nil:
			return err
		}
		p.tell(observed)
		p.round.mark(&candidate[S]{key: key, observed: &observed})
	}
	if err := (publishing[T, S]{p}).publish(ctx); err != nil {
		return err
	}
	var none S
	return p.ready(none)
}

// notFound returns the wait for a thing that somebody else is to create.
func (p *pass[T, S]) notFound(ref Reference) error {
	return reconcile.LowPriority(reconcile.Wait(reasonNotFound, p.every, "%s does not exist, and is not to be created", ref))
}

// ready asks whether the things are ready, and returns the error of the first that is not.
func (p *pass[T, S]) ready(desired S) (first error) {
	for _, key := range p.keys {
		f := p.round.done[key]
		if p.Ready == nil || f.observed == nil {
			continue
		}
		if err := p.Ready(p.obj, *f.observed, desired); first == nil {
			first = err
		}
	}
	return first
}

// observe returns the state of a thing, whoever it belongs to. If the API could not find it by what is recorded, it does not exist.
func (p *pass[T, S]) observe(ctx context.Context, ref Reference) (observed S, err error) {
	if ref.ID == "" && (p.Identity == ByID || p.Identity == ByToken && ref.Token == "") {
		return observed, ErrNotFound
	}
	return calls.Ask(ctx, p.visit, calls.Observe, func(ctx context.Context) (S, error) { return p.Observe(ctx, p.client, p.obj, ref) })
}

// tell tells the author of what was observed under a desired key.
func (p *pass[T, S]) tell(observed S) {
	if p.seen = observed; p.Observed != nil {
		p.Observed(p.obj, observed)
	}
}

// call makes a call to the API that returns only an error.
func (p *pass[T, S]) call(ctx context.Context, f calls.Function, do func(ctx context.Context) error) error {
	_, err := calls.Ask(ctx, p.visit, f, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}
