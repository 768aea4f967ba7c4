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

// patch replaces the object's list of finalizers. It changes nothing else.
//
// It sends a merge patch with the resource version that was read, so a change by another client in between is a conflict. A
// JSON patch that removes one entry would not be safer: if the list is shorter than expected, the API server answers 422,
// which looks like invalid input.
func patch(ctx context.Context, c client.Client, obj client.Object, finalizers []string) error {
	if obj.GetResourceVersion() == "" {
		return errors.New("the object has no resource version: read it from the API server first")
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata{
		UID:             obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion(),
		Finalizers:      finalizers,
	}})
	if err != nil {
		return err
	}
	patched, ok := obj.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("the deep copy of a %T is not a client.Object", obj)
	}
	// The response is decoded into the existing fields. If the response has no list, the old list would stay, so it
	// is removed first.
	patched.SetFinalizers(nil)
	patched.SetManagedFields(nil)
	if err := c.Patch(ctx, patched, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	obj.SetFinalizers(patched.GetFinalizers())
	obj.SetResourceVersion(patched.GetResourceVersion())
	obj.SetManagedFields(patched.GetManagedFields())
	return nil
}

type metadata struct {
	UID             types.UID `json:"uid,omitempty"` // empty with controller-runtime's fake client, which sets no UID
	ResourceVersion string    `json:"resourceVersion"`
	Finalizers      []string  `json:"finalizers"` // nil is sent as null, which removes the field
}

// describe returns kind, namespace and name of an object for error messages.
func describe(c client.Client, obj client.Object) string {
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
