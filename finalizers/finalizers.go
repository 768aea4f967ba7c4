package finalizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrBeingDeleted says that a finalizer is missing and can no longer be added, because the object is being deleted.
var ErrBeingDeleted = errors.New("the object is being deleted")

// Ensure puts the finalizers on the object, and says whether any had to be added. Several are added by one request, at the
// end of the list and in the order given; none is sent when they are there.
//
// Call it before the first effect outside of the cluster, and go on only without an error. The object is as it was read
// from the API server or a cache, its finalizers not edited. A copy in a cache that lags shows a finalizer for a moment
// after it has been removed: do not remove one that is still needed.
//
// In memory the object gets the finalizers, the resource version and the managed fields of the server's answer; all else
// stays, also what the caller has changed in its status. Never pass an object that shares memory with a cache
// (client.UnsafeDisableDeepCopy).
//
// Errors: [ErrInvalidName] before any request; [ErrBeingDeleted]; a conflict (apierrors.IsConflict) when the object was
// written since it was read, or has made room for a namesake; apierrors.IsNotFound when it is gone.
func Ensure(ctx context.Context, c client.Client, obj client.Object, names ...string) (added bool, err error) {
	var missing []string
	for _, name := range names {
		if !slices.Contains(obj.GetFinalizers(), name) && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return false, nil
	}
	if err := validate(missing); err != nil {
		return false, err
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return false, fmt.Errorf("add %s to %s: %w, which allows no new finalizers", quote(missing), subject(c, obj), ErrBeingDeleted)
	}
	if err := patch(ctx, c, obj, slices.Concat(obj.GetFinalizers(), missing)); err != nil {
		return false, fmt.Errorf("add %s to %s: %w", quote(missing), subject(c, obj), err)
	}
	return true, nil
}

// Remove takes the finalizers from the object without any cleanup, and says whether it did: for what needs no cleanup any
// more, such as a feature that is switched off, or a name that an older version used. The object need not be being
// deleted. If it is, and these were its last finalizers, it is gone afterwards.
//
// What is not there any more, be it an entry or the object, is success. Otherwise as [Ensure]: one request or none, the
// object is updated in memory, and a conflict (apierrors.IsConflict) says that it was written since it was read.
func Remove(ctx context.Context, c client.Client, obj client.Object, names ...string) (removed bool, err error) {
	if err := validate(names); err != nil {
		return false, err
	}
	var ours, others []string
	for _, name := range obj.GetFinalizers() {
		if slices.Contains(names, name) {
			ours = append(ours, name)
		} else {
			others = append(others, name)
		}
	}
	if len(ours) == 0 {
		return false, nil
	}
	err = patch(ctx, c, obj, others)
	switch {
	case apierrors.IsNotFound(err):
		obj.SetFinalizers(others)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("remove %s from %s: %w", quote(ours), subject(c, obj), err)
	}
	return true, nil
}

// ErrInvalidName says that a name cannot be that of an operator's finalizer: it has to be a domain, a slash, and a name of
// at most 63 letters, digits, "-", "_" and ".", such as "example.com/account". The API server accepts names without
// a domain on custom resources, but these are Kubernetes' own ("orphan", "foregroundDeletion").
var ErrInvalidName = errors.New("invalid finalizer")

func validate(names []string) error {
	for _, name := range names {
		faults := validation.IsQualifiedName(name)
		if len(faults) == 0 && !strings.Contains(name, "/") {
			faults = []string{`a domain of yours must stand before it, as in "example.com/account"`}
		}
		if len(faults) > 0 {
			return fmt.Errorf("%w %q: %s", ErrInvalidName, name, strings.Join(faults, "; "))
		}
	}
	return nil
}
