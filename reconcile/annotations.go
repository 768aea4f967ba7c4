package reconcile

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchAnnotations makes some annotations of an object have some values, and removes others, by one
// patch of just these keys; without a request if they are so already. obj gets the annotations, labels,
// owner references and resource version of the answer, all else in it stays.
//
// It may be the pass's own object: the pass goes on from the answer.
func PatchAnnotations(ctx context.Context, c client.Client, obj client.Object, set map[string]string, remove ...string) (changed bool, err error) {
	return setKeys(ctx, c, obj, "annotate", "annotations", obj.GetAnnotations(), set, remove)
}

// PatchLabels does with labels what [PatchAnnotations] does with annotations.
func PatchLabels(ctx context.Context, c client.Client, obj client.Object, set map[string]string, remove ...string) (changed bool, err error) {
	return setKeys(ctx, c, obj, "label", "labels", obj.GetLabels(), set, remove)
}

func setKeys(ctx context.Context, c client.Client, obj client.Object, verb, field string, have, set map[string]string, remove []string) (changed bool, err error) {
	difference := map[string]any{}
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
	if err := patchMetadata(ctx, c, obj, verb, map[string]any{field: difference}); err != nil {
		return false, err
	}
	return true, nil
}
