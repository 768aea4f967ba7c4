package ownedresources

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readLive reads what the API server has, and not what a cache has. Without a manager's own
// reader it asks for an unstructured object, which a manager's client does not cache unless
// it was told to.
func (a *applier) readLive(ctx context.Context, w wanted) (client.Object, error) {
	live, name := w.kind.empty(), client.ObjectKeyFromObject(w.object)
	if a.live != nil {
		return live, a.live.Get(ctx, name, live)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(w.kind.gvk)
	if err := w.owner.client.Get(ctx, name, u); err != nil {
		return nil, err
	}
	return live, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, live)
}
