package external

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// applier creates the things that a search has not found, and updates the things that it has found.
type applier[T client.Object, S any] struct {
	resource *Resource[T, S]
	outside  *outside[T, S]
	ledger   *ledger[T, S]
	wanted   *wanted

	found   []*candidate[S]
	desired S
	isPart  bool // a later pass handles the other things of the object
	behind  bool // the API may still show an old state
}

// apply creates the things that are missing, and updates the things that differ.
func (a *applier[T, S]) apply(ctx context.Context) error {
	a.confirm()
	begin := a.ledger.record.Version
	version := begin // the version with which the existing things were written
	if !slices.ContainsFunc(a.found, func(f *candidate[S]) bool { return !f.missing }) {
		version = a.wanted.version
	}
	recorded := a.ledger.record.Version
	later, begunEarlier, err := a.createAll(ctx)
	if err != nil {
		return err
	}
	if begunEarlier && recorded != a.wanted.version {
		version = "" // it is not known with which version an earlier pass created the thing
	}
	if a.ledger.record.Version = version; later != nil {
		return later
	}
	if !a.wanted.mayUpdate() {
		if slices.ContainsFunc(a.found, func(f *candidate[S]) bool { return f.wasFaster }) {
			a.ledger.record.Version = ""
		}
		return nil
	}
	for _, f := range a.found {
		isOutdated := f.wasFaster || version != a.wanted.version && !f.missing
		if f.observed == nil || !isOutdated && !a.differs(f) {
			continue
		}
		if version != a.wanted.version {
			a.ledger.record.Version = "" // unknown until the API has answered
		}
		if err := a.update(ctx, f); err != nil {
			return err
		}
	}
	if a.ledger.record.Version = a.wanted.version; a.isPart && begin != a.wanted.version {
		a.ledger.record.Version = "" // the other things may have been written with another version
	}
	return nil
}

// confirm records the things that were found. If a thing was taken over, it removes the version from the record, because it is not known
// with which version that thing was written.
func (a *applier[T, S]) confirm() {
	for _, f := range a.found {
		if f.missing {
			continue
		}
		ref := a.confirmed(f)
		if f.foreign {
			a.ledger.record.forgetWritten()
			ref.Adopted = true
		}
		a.ledger.set(ref)
		a.outside.tell(*f.observed)
	}
}

// confirmed returns the record of a thing that was found.
func (a *applier[T, S]) confirmed(f *candidate[S]) Reference {
	ref, _ := a.ledger.get(f.key)
	ref.Pending = false
	if f.foreign && a.resource.ID != nil {
		ref.ID = "" // this ID belongs to another thing
	}
	return a.outside.withID(ref, *f.observed)
}

// update changes a thing.
func (a *applier[T, S]) update(ctx context.Context, f *candidate[S]) error {
	if err := a.ledger.checkpoint(ctx); err != nil {
		return err
	}
	ref, _ := a.ledger.get(f.key)
	if err := a.outside.update(ctx, ref, *f.observed, a.desired); err != nil {
		return err
	}
	if err := a.lookAgain(ctx, f); err != nil {
		return err
	}
	a.behind = a.behind || a.looksAgain() && a.differs(f)
	return nil
}

func (a *applier[T, S]) differs(f *candidate[S]) bool {
	ref, _ := a.ledger.get(f.key)
	return a.resource.Differs(ref, *f.observed, a.desired)
}

func (a *applier[T, S]) looksAgain() bool {
	return a.resource.Observed != nil || a.resource.Ready != nil || a.resource.Publish != nil
}

// lookAgain observes a thing that was just changed, if a function of the resource gets the observed state.
func (a *applier[T, S]) lookAgain(ctx context.Context, f *candidate[S]) error {
	if !a.looksAgain() {
		return nil
	}
	ref, _ := a.ledger.get(f.key)
	observed, err := a.outside.observe(ctx, ref)
	if err != nil {
		return err
	}
	f.observed = &observed
	a.outside.tell(observed)
	return nil
}
