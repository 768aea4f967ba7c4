package finalizers

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Finalizer is the name of a finalizer, and the cleanup that has to succeed before it is removed.
type Finalizer struct {
	// Name is a domain, a slash and a name, such as "example.com/account"; see [ErrInvalidName].
	Name string
	// Cleanup is required; see [Finalize] for what it must do.
	Cleanup func(context.Context) error
}

// Ordered is the list of finalizers of one object, in the order in which their resources are created. The cleanups run in
// reverse order. The last one runs first, and each of the others only after the finalizer that follows it in this list is
// removed. The order of the finalizers on the object does not matter.
type Ordered []Finalizer

// Ensure adds all finalizers that are missing, in one request; see the function [Ensure]. It also returns an error, before
// any request, if a name is listed twice or a cleanup is nil.
func (o Ordered) Ensure(ctx context.Context, c client.Client, obj client.Object) (added bool, err error) {
	if err := o.validate(); err != nil {
		return false, err
	}
	return Ensure(ctx, c, obj, o.names()...)
}

// Finalize finalizes one after another, from the last to the first; see the function [Finalize]. It stops at the first
// that cannot finish, and returns its error and [Pending]. Otherwise the outcome is [NotDeleted] if the object is not being
// deleted, [GaveUp] if this call gave up at least one, [Finished] if it finished at least one, or else [Absent]. It also
// returns an error, before any request, if a name is listed twice or a cleanup is nil.
func (o Ordered) Finalize(ctx context.Context, c client.Client, obj client.Object, options ...Option) (Outcome, error) {
	if err := o.validate(); err != nil {
		return Pending, err
	}
	if obj.GetDeletionTimestamp().IsZero() {
		return NotDeleted, nil
	}
	sum := Absent
	for _, f := range slices.Backward(o) {
		outcome, err := Finalize(ctx, c, obj, f.Name, f.Cleanup, options...)
		if err != nil {
			return outcome, err
		}
		if outcome == GaveUp || sum == Absent {
			sum = outcome
		}
	}
	return sum, nil
}

func (o Ordered) names() []string {
	names := make([]string, len(o))
	for i, f := range o {
		names[i] = f.Name
	}
	return names
}

// validate finds mistakes before the first request, instead of in the middle of a deletion.
func (o Ordered) validate() error {
	names := o.names()
	if err := validate(names); err != nil {
		return err
	}
	for i, f := range o {
		if slices.Contains(names[:i], f.Name) {
			return fmt.Errorf("%w %q: it is listed twice", ErrInvalidName, f.Name)
		}
		if f.Cleanup == nil {
			return fmt.Errorf("finalizer %q has no cleanup", f.Name)
		}
	}
	return nil
}
