package owned

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// PatchLocked sends a merge patch of the metadata, and of the spec unless it is nil, with the UID and the resource
// version of the live object as preconditions. It writes the API server's answer into answer, which is an empty object,
// with its kind if it is not typed.
func (o *Owner) PatchLocked(ctx context.Context, live, answer client.Object, metadata, spec map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	content := map[string]any{"metadata": metadata}
	if spec != nil {
		content["spec"] = spec
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	return LostRaceAsConflict(o.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), o.FieldManager))
}

// DeleteExactly deletes an object, unless it has changed since it was read: it may belong to another owner or set now.
// It returns the API server's errors, also a conflict.
func DeleteExactly(ctx context.Context, c client.Client, obj client.Object, policy metav1.DeletionPropagation) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return c.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(policy))
}

// LiveReader returns a reader that reads past the cache. Without a manager it returns the client. Read unstructured
// objects and metadata with it: a manager's client does not cache these unless it was configured to.
func (o *Owner) LiveReader() client.Reader {
	if o.APIReader != nil {
		return o.APIReader
	}
	return o.Client
}

// ReadLive reads the object past the cache.
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

// ReadTree reads the object past the cache, with fields that its Go type may not have.
func (d *Desired) ReadTree(ctx context.Context) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(d.Kind.GVK)
	return u, d.Owner.LiveReader().Get(ctx, d.Key(), u)
}

// ListLive lists objects of a kind in a namespace past the cache, which may not show our last write yet.
func (o *Owner) ListLive(ctx context.Context, gvk schema.GroupVersionKind, namespace string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := o.LiveReader().List(ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("list %s objects: %w", gvk.Kind, err)
	}
	return list.Items, nil
}

// LostRaceAsConflict turns the refusal of a precondition on the UID into a conflict. If the object was deleted or
// replaced since it was read, the API server answers 409, or 422 on metadata.uid as if the object were invalid.
func LostRaceAsConflict(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	causes := status.Status().Details.Causes
	if len(causes) == 0 {
		return err
	}
	for _, cause := range causes {
		if cause.Field != "metadata.uid" {
			return err
		}
	}
	return WithStatus(status, metav1.StatusReasonConflict, http.StatusConflict)
}

// WithStatus returns an error of the API server with another reason and code.
func WithStatus(status apierrors.APIStatus, reason metav1.StatusReason, code int32) error {
	err := &apierrors.StatusError{ErrStatus: status.Status()}
	err.ErrStatus.Reason, err.ErrStatus.Code = reason, code
	return err
}
