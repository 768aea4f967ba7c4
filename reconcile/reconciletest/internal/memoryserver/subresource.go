package memoryserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/builtin"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

const evictionSubresource = "eviction"

// requireSubresource returns an error if the kind does not have the subresource.
func requireSubresource(k *kind.Kind, subresource, name string) error {
	if subresource == "" || subresource == kind.StatusSubresource && k.HasStatus || subresource == kind.ScaleSubresource && k.HasScale {
		return nil
	}
	if k.Custom {
		return apierrors.NewNotFound(k.GroupResource(), name)
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{Group: k.Resource.Group, Kind: k.Resource.Resource},
	}}
}

var errMethodNotAllowed = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
	Message: "the server does not allow this method on the requested resource",
}}

func (c *liveClient) Status() client.SubResourceWriter { return c.SubResource(kind.StatusSubresource) }

func (c *liveClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{client: c, name: name}
}

type subresourceClient struct {
	client *liveClient
	name   string
}

// find is like lookup, and returns an error if the kind does not have the subresource.
func (c *subresourceClient) find(ctx context.Context, obj client.Object) (*kind.Kind, client.ObjectKey, error) {
	k, key, err := c.client.lookup(ctx, obj, obj.GetNamespace(), obj.GetName())
	if err == nil {
		err = requireSubresource(k, c.name, key.Name)
	}
	return k, key, err
}

func (c *subresourceClient) Get(ctx context.Context, obj, subresource client.Object, _ ...client.SubResourceGetOption) error {
	k, key, err := c.find(ctx, obj)
	if err != nil {
		return err
	}
	if c.name != kind.ScaleSubresource {
		found, err := c.client.get(k, key, reflect.TypeOf(subresource))
		if err != nil {
			return err
		}
		copyInto(subresource, found)
		return nil
	}
	c.client.server.mu.Lock()
	defer c.client.server.mu.Unlock()
	v := c.client.server.store.find(k, key)
	if v == nil {
		return apierrors.NewNotFound(k.GroupResource(), key.Name)
	}
	found, err := c.client.server.objectIn(k, v)
	if err != nil {
		return asStatus(err)
	}
	return respondScale(scaleOf(k, found), subresource)
}

// Create evicts a pod: it deletes the pod, and ignores its disruption budget. No other subresource can be created.
func (c *subresourceClient) Create(ctx context.Context, obj, subresource client.Object, options ...client.SubResourceCreateOption) error {
	eviction, is := subresource.(*policyv1.Eviction)
	if c.name != evictionSubresource || !is {
		return fmt.Errorf("the server in memory cannot create the subresource %s from a %T: it evicts pods only", c.name, subresource)
	}
	k, key, err := c.client.lookup(ctx, obj, obj.GetNamespace(), obj.GetName())
	if err != nil {
		return err
	}
	o := ptr.Deref(eviction.DeleteOptions, metav1.DeleteOptions{})
	o.DryRun = append(o.DryRun, (&client.SubResourceCreateOptions{}).ApplyOptions(options).DryRun...)
	c.client.server.mu.Lock()
	defer c.client.server.mu.Unlock()
	return asStatus(c.client.server.delete(k, key, &o))
}

func (c *subresourceClient) Update(ctx context.Context, obj client.Object, options ...client.SubResourceUpdateOption) error {
	o := (&client.SubResourceUpdateOptions{}).ApplyOptions(options)
	w := newWriteOptions(o.FieldManager, o.DryRun, o.FieldValidation)
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
	if c.name != kind.ScaleSubresource {
		return c.client.update(ctx, body, c.name, w)
	}
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.rescale(ctx, obj, body, body.GetUID(), w, func(scale *autoscalingv1.Scale) error {
		*scale = autoscalingv1.Scale{}
		return json.Unmarshal(content, scale)
	})
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
	if c.name != kind.ScaleSubresource {
		return c.client.patch(ctx, obj, body, c.name, patch, w)
	}
	content, err := patch.Data(body)
	if err != nil {
		return err
	}
	if t := patch.Type(); t != types.MergePatchType && t != types.JSONPatchType {
		return errUnsupportedPatch
	}
	return c.rescale(ctx, obj, body, "", w, func(scale *autoscalingv1.Scale) error { return patchScale(scale, patch.Type(), content) })
}

func (c *subresourceClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	o := (&client.SubResourceApplyOptions{}).ApplyOpts(options)
	if c.name == kind.ScaleSubresource {
		return errUnsupportedPatch
	}
	body := obj
	if o.SubResourceBody != nil {
		body = o.SubResourceBody
	}
	return c.client.apply(ctx, obj, body, c.name, &o.ApplyOptions)
}

func (c *subresourceClient) rescale(ctx context.Context, obj, body client.Object, uid types.UID, w writeOptions, change func(*autoscalingv1.Scale) error) error {
	k, key, err := c.find(ctx, obj)
	if err != nil {
		return err
	}
	c.client.server.mu.Lock()
	scale, err := c.client.server.rescale(k, key, uid, change, w)
	c.client.server.mu.Unlock()
	if err != nil {
		return asStatus(err)
	}
	return respondScale(scale, body)
}

func patchScale(scale *autoscalingv1.Scale, patch types.PatchType, content []byte) error {
	before, err := json.Marshal(scale)
	if err != nil {
		return err
	}
	after, err := applyJSON(before, patch, content)
	if err != nil {
		return err
	}
	*scale = autoscalingv1.Scale{}
	return json.Unmarshal(after, scale)
}

// respondScale writes a scale into the object of the request.
func respondScale(scale *autoscalingv1.Scale, out client.Object) error {
	if typed, is := out.(*autoscalingv1.Scale); is {
		scale.TypeMeta = metav1.TypeMeta{}
		*typed = *scale
		return nil
	}
	content, err := json.Marshal(scale)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, out)
}

// scaleOf returns the scale subresource of an object.
func scaleOf(k *kind.Kind, object client.Object) *autoscalingv1.Scale {
	s := k.Strategy.(kind.Scaler).Scale(object)
	s.ObjectMeta = metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
		ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
	}
	s.APIVersion, s.Kind = "autoscaling/v1", "Scale"
	return &s
}

// rescale sets the number of replicas. The caller holds the lock.
func (s *Server) rescale(k *kind.Kind, key client.ObjectKey, uid types.UID, change func(*autoscalingv1.Scale) error, options writeOptions) (*autoscalingv1.Scale, error) {
	stored, err := s.modify(k, key, kind.ScaleSubresource, uid, options, nil, func(live client.Object) (client.Object, error) {
		scale := scaleOf(k, live)
		if err := change(scale); err != nil {
			return nil, err
		}
		obj := live.DeepCopyObject().(client.Object)
		if err := k.Strategy.(kind.Scaler).SetScale(obj, scale); err != nil {
			return nil, err
		}
		if scale.ResourceVersion != "" {
			obj.SetResourceVersion(scale.ResourceVersion)
		}
		return obj, setReplicasOwner(k, obj, live, scale, options.manager)
	})
	if err != nil {
		return nil, err
	}
	shown, err := s.convertTo(k, stored)
	if err != nil {
		return nil, err
	}
	return scaleOf(k, shown), nil
}

// replicasPaths returns the path of the field with the replicas in each version of a kind. The path is nil for a version without scale.
func replicasPaths(k *kind.Kind) managedfields.ResourcePathMappings {
	all := []*kind.Kind{k}
	if k.Versions != nil {
		all = k.Versions.All
	}
	paths := managedfields.ResourcePathMappings{}
	for _, version := range all {
		var path fieldpath.Path
		if version.HasScale {
			for _, step := range version.Strategy.(kind.Scaler).ReplicasPath() {
				path = append(path, fieldpath.PathElement{FieldName: &step})
			}
		}
		paths[version.GVK.GroupVersion().String()] = path
	}
	return paths
}

// setReplicasOwner makes the manager of a scale request the owner of the replicas in obj's managed fields. As on the real server, it first
// decides this in the managed fields of the scale. Then it translates them to the path of the replicas in the object.
func setReplicasOwner(k *kind.Kind, obj, live client.Object, scale *autoscalingv1.Scale, manager string) (err error) {
	owners := managedfields.NewScaleHandler(live.GetManagedFields(), k.GVK.GroupVersion(), replicasPaths(k))
	before := scaleOf(k, live)
	if before.ManagedFields, err = owners.ToSubresource(); err != nil {
		return err
	}
	scale.APIVersion, scale.Kind = before.APIVersion, before.Kind
	after := builtin.ScaleFieldManager().UpdateNoErrors(before, scale, manager).(*autoscalingv1.Scale)
	managers, err := owners.ToParent(after.ManagedFields)
	obj.SetManagedFields(managers)
	return err
}
