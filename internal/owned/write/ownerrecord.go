package write

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/passcontext"
)

// SetRecord sets an annotation of the owner in which this library stores a record. If the value is empty, it removes the annotation. If the
// owner has changed since it was read, the error is a conflict.
func SetRecord(ctx context.Context, o *owned.Owner, key, value string) error {
	if o.Object.GetAnnotations()[key] == value {
		return nil
	}
	var annotation any
	if value != "" {
		annotation = value
	}
	answer := &metav1.PartialObjectMetadata{}
	answer.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.Reference.APIVersion, o.Reference.Kind))
	if err := PatchLocked(ctx, o, o.Object, answer, map[string]any{"annotations": map[string]any{key: annotation}}, nil); err != nil {
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
