package owned

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LiveReader returns the APIReader, which reads past the cache, or the client if APIReader is nil. A manager's client does not cache
// unstructured objects by default. So read unstructured objects with the result.
func (o *Owner) LiveReader() client.Reader {
	if o.APIReader != nil {
		return o.APIReader
	}
	return o.Client
}

// ReadLive reads the live object from the API server, and not from the cache.
func (d *Desired) ReadLive(ctx context.Context) (client.Object, error) {
	live := d.Kind.Empty()
	if d.Owner.APIReader != nil {
		return live, d.Owner.APIReader.Get(ctx, d.Key(), live)
	}
	u, err := d.ReadTree(ctx)
	if err != nil {
		return nil, err
	}
	return live, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, live)
}

// ReadTree reads the live object from the API server as an unstructured object, so it also has fields that the Go type lacks.
func (d *Desired) ReadTree(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(d.Kind.GVK)
	return u, d.Owner.LiveReader().Get(ctx, d.Key(), u)
}

// ListLive lists objects of a kind from the API server. The cache may not show our last write yet.
func (o *Owner) ListLive(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := o.LiveReader().List(ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("list %s objects: %w", gvk.Kind, err)
	}
	return list.Items, nil
}

// RequireCurrent returns a conflict if the API server has another version of the owner at this moment. [Owner.Confirm] proves less: our
// version is not older than this process.
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
