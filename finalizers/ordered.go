package finalizers

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Finalizer is a name and what has to be done before it goes.
type Finalizer struct {
	Name    string
	Cleanup func(context.Context) error
}

// Ordered is the finalizers of one object in the order in which what they stand for is created. Cleanup goes the other way:
// the last one first, and the next only after its finalizer is gone. The order is that of this list, whatever the
// order on the object is.
type Ordered []Finalizer

// Ensure is [Ensure] of all of them, by one request.
func (o Ordered) Ensure(ctx context.Context, c client.Client, obj client.Object) (added bool, err error) {
	if err := o.validate(); err != nil {
		return false, err
	}
	return Ensure(ctx, c, obj, o.names()...)
}

// Finalize is [Finalize] of each, from the last to the first. It stops at the first that cannot finish, with its error.
// The outcome is [GaveUp] if any of them was given up now, else [Finished] if any finished now, else [Absent].
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

// validate finds mistakes before the first request, and not in the middle of a deletion.
func (o Ordered) validate() error {
	names := o.names()
	if err := validate(names); err != nil {
		return err
	}
	for i, f := range o {
		if slices.Contains(names[:i], f.Name) {
			return fmt.Errorf("%w %q: it is there twice", ErrInvalidName, f.Name)
		}
		if f.Cleanup == nil {
			return fmt.Errorf("finalizer %q has no cleanup", f.Name)
		}
	}
	return nil
}
