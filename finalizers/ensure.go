package finalizers

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
