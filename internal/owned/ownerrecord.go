package owned

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// SetRecord sets a record on the owner, or removes it if the value is empty. The error is a conflict if the owner has
// changed since it was read.
func (o *Owner) SetRecord(ctx context.Context, key, value string) error {
	if o.Object.GetAnnotations()[key] == value {
		return nil
	}
	var annotation any
	if value != "" {
		annotation = value
	}
	answer := &metav1.PartialObjectMetadata{}
	answer.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.Reference.APIVersion, o.Reference.Kind))
	if err := o.PatchLocked(ctx, o.Object, answer, map[string]any{"annotations": map[string]any{key: annotation}}, nil); err != nil {
		return fmt.Errorf("annotate %s: %w", o, err)
	}
	o.Object.SetAnnotations(maps.Clone(answer.GetAnnotations()))
	o.Object.SetLabels(maps.Clone(answer.GetLabels()))
	o.Object.SetOwnerReferences(slices.Clone(answer.GetOwnerReferences()))
	o.Object.SetResourceVersion(answer.GetResourceVersion())
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.Rebase(o.Object)
	}
	return nil
}

// RequireCurrent returns a conflict unless the owner is as the API server has it at this moment. [Owner.Confirm] makes sure
// only that it is not older than this process.
func (o *Owner) RequireCurrent(ctx context.Context) error {
	live, err := o.ReadOwner(ctx)
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != o.Reference.UID || live.GetResourceVersion() != o.Object.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.Reference.Kind}, o.Reference.Name,
			fmt.Errorf("it was changed or deleted since version %q, and the cache does not show that yet", o.Object.GetResourceVersion()))
	}
	return nil
}
