package memoryserver

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serves reports as an error that a kind does not have a subresource.
func (k *kind) serves(subresource string) error {
	if subresource == "" || k.fields[subresource] != nil {
		return nil
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{Group: k.resource.Group, Kind: k.resource.Resource},
	}}
}

func (c *liveClient) Status() client.SubResourceWriter { return c.SubResource(statusSubresource) }

func (c *liveClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{client: c, name: name}
}

type subresourceClient struct {
	client *liveClient
	name   string
}

func (c *subresourceClient) Get(_ context.Context, _, _ client.Object, _ ...client.SubResourceGetOption) error {
	return fmt.Errorf("the server in memory does not read subresource %s", c.name)
}

func (c *subresourceClient) Create(_ context.Context, _, _ client.Object, _ ...client.SubResourceCreateOption) error {
	return fmt.Errorf("the server in memory does not create subresource %s", c.name)
}

func (c *subresourceClient) Update(ctx context.Context, obj client.Object, options ...client.SubResourceUpdateOption) error {
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(options)
	body := obj
	if o.SubResourceBody != nil {
		body = o.SubResourceBody
		if body.GetName() == "" {
			body.SetName(obj.GetName())
		}
		if body.GetNamespace() == "" {
			body.SetNamespace(obj.GetNamespace())
		}
	}
	return c.client.update(ctx, body, c.name, newWriteOptions(o.FieldManager, o.DryRun, o.FieldValidation))
}

func (c *subresourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	o := (&client.SubResourcePatchOptions{}).ApplyOptions(options)
	if err := validatePatchOptions(patch.Type(), o.FieldManager, o.Force); err != nil {
		return err
	}
	w := newWriteOptions(o.FieldManager, o.DryRun, o.FieldValidation)
	w.force = ptr.Deref(o.Force, false)
	body := obj
	if o.SubResourceBody != nil {
		body = o.SubResourceBody
	}
	return c.client.patch(ctx, obj, body, c.name, patch, w)
}

func (c *subresourceClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	o := &client.SubResourceApplyOptions{}
	o.ApplyOpts(options)
	body := obj
	if o.SubResourceBody != nil {
		body = o.SubResourceBody
	}
	return c.client.apply(ctx, obj, body, c.name, &o.ApplyOptions)
}
