package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// SetAnnotations makes some annotations of an object have some values, and removes others, by one
// patch of just these keys; without a request if they are so already. obj gets the annotations
// and the resource version of the answer, all else in it stays.
//
// It may be the pass's own object: the pass goes on from the answer.
func SetAnnotations(ctx context.Context, c client.Client, obj client.Object, set map[string]string, remove ...string) (changed bool, err error) {
	difference := map[string]any{}
	have := obj.GetAnnotations()
	for _, key := range remove {
		if _, ok := have[key]; ok {
			difference[key] = nil
		}
	}
	for key, value := range set {
		if is, ok := have[key]; !ok || is != value {
			difference[key] = value
		}
	}
	if len(difference) == 0 {
		return false, nil
	}
	metadata := map[string]any{"annotations": difference}
	if uid := obj.GetUID(); uid != "" {
		metadata["uid"] = uid // never a namesake
	}
	own, _ := passcontext.Of(ctx).(interface {
		owns(obj client.Object) bool
		rebase()
	})
	if own != nil && own.owns(obj) { // it is going to be written again, with a lock
		metadata["resourceVersion"] = obj.GetResourceVersion()
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return false, err
	}
	kind, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return false, fmt.Errorf("kind of %T: %w: add its types to the scheme", obj, err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	answer.SetGroupVersionKind(kind)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return false, fmt.Errorf("annotate %s %s: %w", kind.Kind, client.ObjectKeyFromObject(obj), err)
	}
	obj.SetAnnotations(maps.Clone(answer.GetAnnotations()))
	obj.SetResourceVersion(answer.GetResourceVersion())
	if own != nil && own.owns(obj) {
		own.rebase()
	}
	return true, nil
}

func (p *pass[T]) owns(obj client.Object) bool { return client.Object(p.obj) == obj }
