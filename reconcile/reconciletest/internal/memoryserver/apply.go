package memoryserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sigsjson "sigs.k8s.io/json"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// apply carries out a server-side apply. If the object does not exist, it creates it. The caller holds the lock.
func (s *Server) apply(k *kind.Kind, key client.ObjectKey, subresource string, content []byte, options writeOptions) (client.Object, error) {
	options.applied = true
	if s.store.find(k, key) == nil {
		if subresource != "" && !k.CreateOnUpdate {
			return nil, apierrors.NewNotFound(k.GroupResource(), key.Name)
		}
		return s.applyNew(k, key, subresource, content, options)
	}
	return s.modify(k, key, subresource, "", options, newPatch(k, subresource, types.ApplyYAMLPatchType, content, options), func(live client.Object) (client.Object, error) {
		return s.merge(k, key, subresource, live, content, options)
	})
}

func (s *Server) applyNew(k *kind.Kind, key client.ObjectKey, subresource string, content []byte, options writeOptions) (client.Object, error) {
	request := s.repeatable(k, newPatch(k, subresource, types.ApplyYAMLPatchType, content, options))
	if earlier := s.store.earlierCreation(k, key, request); earlier != nil {
		return s.store.reuse(k, key, earlier), nil
	}
	obj, err := s.merge(k, key, subresource, k.Strategy.New(), content, options)
	if err != nil {
		return nil, err
	}
	if uid := obj.GetUID(); uid != "" {
		return nil, apierrors.NewConflict(k.GroupResource(), key.Name,
			fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	return s.insert(k, obj, options, request)
}

func (s *Server) merge(k *kind.Kind, key client.ObjectKey, subresource string, live client.Object, content []byte, options writeOptions) (client.Object, error) {
	patch := &unstructured.Unstructured{Object: map[string]any{}}
	duplicates, err := decodeYAML(content, patch.Object)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if k.Custom {
		live = live.DeepCopyObject().(client.Object) // the merged object shares memory with it
	}
	merged, err := s.fieldManager(k, subresource).Apply(live, patch, options.manager, options.force)
	if err != nil {
		return nil, err
	}
	if options.strict && duplicates != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", duplicates))
	}
	obj := merged.(client.Object)
	dedupOwnerReferences(obj)
	if err := matchNamespace(k, key.Namespace, obj); err != nil {
		return nil, err
	}
	return obj, matchName(obj, key.Name)
}

// decodeYAML decodes YAML. If fields occur twice, it reports them in the error duplicates. Clients mostly send JSON, which is YAML too.
// Decoding it as JSON is ten times as fast.
func decodeYAML(content []byte, into map[string]any) (duplicates, err error) {
	if found, err := sigsjson.UnmarshalStrict(content, &into); err == nil && len(found) == 0 {
		return nil, nil
	}
	clear(into)
	if err := yaml.Unmarshal(content, &into); err != nil {
		return nil, err
	}
	return yaml.UnmarshalStrict(content, &map[string]any{}), nil
}

// validatePatchOptions rejects an apply without a field manager, and a patch that is not an apply and has force.
func validatePatchOptions(patchType types.PatchType, manager string, force *bool) error {
	options := &metav1.PatchOptions{FieldManager: manager, Force: force}
	if errs := validation.ValidatePatchOptions(options, patchType); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return nil
}

// applyConfiguration has getters that every generated apply configuration has.
type applyConfiguration interface {
	GetName() *string
	GetNamespace() *string
	GetKind() *string
	GetAPIVersion() *string
}

func (c *liveClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	o := (&client.ApplyOptions{}).ApplyOptions(options)
	return c.apply(ctx, obj, obj, "", o)
}

func (c *liveClient) apply(ctx context.Context, obj, body runtime.ApplyConfiguration, subresource string, o *client.ApplyOptions) error {
	if err := validatePatchOptions(types.ApplyYAMLPatchType, o.FieldManager, o.Force); err != nil {
		return err
	}
	k, key, err := c.lookupConfiguration(ctx, obj)
	if err != nil {
		return err
	}
	if err := requireSubresource(k, subresource, key.Name); err != nil {
		return err
	}
	content, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("failed to create apply request: %w", err)
	}
	w := newWriteOptions(o.FieldManager, o.DryRun, "")
	w.force = ptr.Deref(o.Force, false)
	c.server.mu.Lock()
	stored, err := c.server.apply(k, key, subresource, content, w)
	c.server.mu.Unlock()
	if err != nil {
		return asStatus(err)
	}
	content, err = c.server.encoded(k, stored)
	if err != nil {
		return err
	}
	if untyped, is := body.(runtime.Unstructured); is {
		object := map[string]any{}
		if err := utiljson.Unmarshal(content, &object); err != nil {
			return err
		}
		untyped.SetUnstructuredContent(object)
		return nil
	}
	return json.Unmarshal(content, body)
}

func (c *liveClient) lookupConfiguration(ctx context.Context, obj runtime.ApplyConfiguration) (*kind.Kind, client.ObjectKey, error) {
	if untyped, is := obj.(client.Object); is {
		return c.lookup(ctx, untyped, untyped.GetNamespace(), untyped.GetName())
	}
	described, ok := obj.(applyConfiguration)
	if !ok {
		return nil, client.ObjectKey{}, fmt.Errorf("%T is a runtime.ApplyConfiguration without the getters of a generated one: generate it with applyconfiguration-gen, or use an unstructured object", obj)
	}
	gv, err := schema.ParseGroupVersion(ptr.Deref(described.GetAPIVersion(), ""))
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	k, err := c.kind(gv.WithKind(ptr.Deref(described.GetKind(), "")))
	if err != nil {
		return nil, client.ObjectKey{}, errors.Join(ctx.Err(), err)
	}
	namespace, name := ptr.Deref(described.GetNamespace(), ""), ptr.Deref(described.GetName(), "")
	if err := requireName(k, namespace, name); err != nil {
		return nil, client.ObjectKey{}, err
	}
	return k, k.Key(namespace, name), ctx.Err()
}
