package ownedresources

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// confirm comes before something is deleted for an owner. A process that has just started, or taken over, may be shown
// an owner as it was long ago, which did not want what it wants now; in a pass that is asked once in the life of the process.
func (a *applier) confirm(ctx context.Context, o *owner) error {
	if pass := passcontext.FromContext(ctx); pass != nil {
		if known, err := pass.ConfirmCurrent(ctx, o.object); known {
			return err
		}
	}
	if o.confirmed {
		return nil
	}
	live, err := a.readOwner(ctx, o)
	if err != nil || live == nil || live.GetUID() != o.reference.UID { // of one that is gone the garbage collector deletes all
		return err
	}
	if version := o.object.GetResourceVersion(); live.GetResourceVersion() != version {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.reference.Kind}, o.reference.Name,
			fmt.Errorf("it has changed since version %q, which is what its children were built from: read it again", version))
	}
	o.confirmed = true
	return nil
}

// readOwner reads the owner past the cache; nil if there is none of its name.
func (a *applier) readOwner(ctx context.Context, o *owner) (client.Object, error) {
	reader := a.live
	if reader == nil {
		reader = o.client // which does not cache unstructured objects
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.reference.APIVersion, o.reference.Kind))
	switch err := reader.Get(ctx, client.ObjectKeyFromObject(o.object), u); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", o, err)
	}
	return u, nil
}
