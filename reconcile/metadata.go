package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// patchMetadata sends what is to be different, and takes over the answer. The verb is for the error.
func patchMetadata(ctx context.Context, c client.Client, obj client.Object, verb string, metadata map[string]any) error {
	if uid := obj.GetUID(); uid != "" {
		metadata["uid"] = uid // never a namesake
	}
	own, _ := passcontext.FromContext(ctx).(interface {
		owns(obj client.Object) bool
		rebase()
	})
	if own != nil && own.owns(obj) { // it is going to be written again, with a lock
		metadata["resourceVersion"] = obj.GetResourceVersion()
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w: add its types to the scheme", obj, err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	answer.SetGroupVersionKind(kind)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("%s %s %s: %w", verb, kind.Kind, client.ObjectKeyFromObject(obj), err)
	}
	obj.SetAnnotations(maps.Clone(answer.GetAnnotations()))
	obj.SetLabels(maps.Clone(answer.GetLabels()))
	obj.SetOwnerReferences(slices.Clone(answer.GetOwnerReferences()))
	obj.SetResourceVersion(answer.GetResourceVersion())
	if own != nil && own.owns(obj) {
		own.rebase()
	}
	return nil
}

func (p *pass[T]) owns(obj client.Object) bool { return client.Object(p.obj) == obj }
