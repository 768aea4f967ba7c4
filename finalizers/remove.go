package finalizers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
