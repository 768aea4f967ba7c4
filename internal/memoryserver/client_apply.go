package memoryserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// applyConfiguration has the getters of generated apply configurations.
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
	content, err = k.Strategy.Encode(stored)
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
		return c.server.lookup(ctx, untyped, untyped.GetNamespace(), untyped.GetName())
	}
	described, ok := obj.(applyConfiguration)
	if !ok {
		return nil, client.ObjectKey{}, fmt.Errorf("%T is a runtime.ApplyConfiguration without the getters of a generated one: generate it with applyconfiguration-gen, or use an unstructured object", obj)
	}
	gv, err := schema.ParseGroupVersion(ptr.Deref(described.GetAPIVersion(), ""))
	if err != nil {
		return nil, client.ObjectKey{}, err
	}
	k, err := c.server.kind(gv.WithKind(ptr.Deref(described.GetKind(), "")))
	if err != nil {
		return nil, client.ObjectKey{}, errors.Join(ctx.Err(), err)
	}
	namespace, name := ptr.Deref(described.GetNamespace(), ""), ptr.Deref(described.GetName(), "")
	if err := requireName(k, namespace, name); err != nil {
		return nil, client.ObjectKey{}, err
	}
	return k, k.Key(namespace, name), ctx.Err()
}
