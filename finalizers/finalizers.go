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

// ErrBeingDeleted is the error of [Ensure] if a finalizer is missing and cannot be added, because the object is being
// deleted. Test for it with errors.Is.
var ErrBeingDeleted = errors.New("the object is being deleted")

// Ensure adds the finalizers that the object lacks, and reports whether it added any. It sends one request for all of them.
// If the object lacks none, it sends no request. New finalizers are added at the end of the list, in the order of the
// arguments.
//
// Call it before the first effect outside of the cluster, and continue only if it returns no error. Pass the object as
// it was read from the API server or a cache, with its finalizers unchanged. A cache that is behind may still show a
// finalizer that was just removed, and Ensure would not add it again. So do not remove a finalizer that is still
// needed.
//
// Ensure copies the finalizers, the resource version and the managed fields from the response into the object in
// memory. All other fields keep their values, also a status that the caller has changed. Never pass an object that
// shares memory with a cache (client.UnsafeDisableDeepCopy).
//
// A name is a domain, a slash, and at most 63 letters, digits, "-", "_" and ".", such as "example.com/account". On custom resources, the
// API server also accepts names without a domain, but Kubernetes uses such names itself ("orphan", "foregroundDeletion").
//
// Errors are an invalid name, before any request; [ErrBeingDeleted]; a conflict (apierrors.IsConflict) if the object was
// changed, or was deleted and created again, since it was read; and apierrors.IsNotFound if it is gone.
func Ensure(ctx context.Context, c client.Client, obj client.Object, names ...string) (added bool, err error) {
	return Replace(ctx, c, obj, nil, names...)
}

// Replace is [Ensure] for finalizers that had other names in an earlier release. The request that adds the missing
// finalizers also removes the former names, so the object has a finalizer at every moment. If no finalizer is missing,
// Replace removes nothing: a replica of the earlier release may add the former name again, and the two releases would then
// undo each other's change for ever. So after the cleanup, pass the former names to [Remove], and run the cleanup for each
// former name that the object has.
func Replace(ctx context.Context, c client.Client, obj client.Object, former []string, names ...string) (added bool, err error) {
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
		return false, fmt.Errorf("add %s to %s: %w, which allows no new finalizers", quote(missing), describe(c, obj), ErrBeingDeleted)
	}
	kept := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(name string) bool {
		return slices.Contains(former, name) && !slices.Contains(names, name)
	})
	if err := patch(ctx, c, obj, slices.Concat(kept, missing)); err != nil {
		return false, fmt.Errorf("add %s to %s: %w", quote(missing), describe(c, obj), err)
	}
	return true, nil
}

// Remove removes the finalizers from the object without running a cleanup, and reports whether it removed any. Use it if no
// cleanup is needed any more, such as for a feature that was switched off or a name that an older version used. It does not
// matter whether the object is being deleted. If it is being deleted and has no other finalizers, the API server removes
// the object.
//
// Remove succeeds if the finalizers or the object are already gone. As [Ensure] does, it sends one request or none, and
// updates the object in memory. Errors are an invalid name, before any request, and a conflict (apierrors.IsConflict) if
// the object was changed since it was read.
func Remove(ctx context.Context, c client.Client, obj client.Object, names ...string) (removed bool, err error) {
	if err := validate(names); err != nil {
		return false, err
	}
	var remove, keep []string
	for _, name := range obj.GetFinalizers() {
		if slices.Contains(names, name) {
			remove = append(remove, name)
		} else {
			keep = append(keep, name)
		}
	}
	if len(remove) == 0 {
		return false, nil
	}
	err = patch(ctx, c, obj, keep)
	switch {
	case apierrors.IsNotFound(err):
		obj.SetFinalizers(keep)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("remove %s from %s: %w", quote(remove), describe(c, obj), err)
	}
	return true, nil
}

func validate(names []string) error {
	for _, name := range names {
		faults := validation.IsQualifiedName(name)
		if len(faults) == 0 && !strings.Contains(name, "/") {
			faults = []string{`a domain of yours must stand before it, as in "example.com/account"`}
		}
		if len(faults) > 0 {
			return fmt.Errorf("invalid finalizer %q: %s", name, strings.Join(faults, "; "))
		}
	}
	return nil
}
