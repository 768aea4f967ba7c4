package finalizers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patch replaces the list of finalizers that was read, and nothing else.
//
// It is a merge patch that holds the resource version: whoever wrote the list meanwhile makes it a conflict. A JSON patch
// of the one entry is no safer, and fails with a 422 that looks like invalid input when the list has become shorter.
func patch(ctx context.Context, c client.Client, obj client.Object, list []string) error {
	if obj.GetResourceVersion() == "" {
		return errors.New("the object has no resource version: read it from the API server first")
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata{
		UID:             obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(),
		Finalizers:      list,
	}})
	if err != nil {
		return err
	}
	answer, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("the deep copy of a %T is no client.Object", obj)
	}
	// An answer is decoded over what is there: a list that it lacks would stay.
	answer.SetFinalizers(nil)
	answer.SetManagedFields(nil)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	obj.SetFinalizers(answer.GetFinalizers())
	obj.SetResourceVersion(answer.GetResourceVersion())
	obj.SetManagedFields(answer.GetManagedFields())
	return nil
}

type metadata struct {
	UID             types.UID `json:"uid,omitempty"` // the fake client gives none
	ResourceVersion string    `json:"resourceVersion"`
	Finalizers      []string  `json:"finalizers"` // null, if there are none, removes the field
}

// subject names an object in errors.
func subject(c client.Client, obj client.Object) string {
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := c.GroupVersionKindFor(obj); err == nil {
		kind = gvk.Kind
	}
	return kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}

func quote(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	word := "finalizer "
	if len(names) > 1 {
		word = "finalizers "
	}
	return word + strings.Join(quoted, ", ")
}
