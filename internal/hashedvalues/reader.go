package hashedvalues

import (
	"context"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AsHashed makes a read return hashed objects as they are. It is for a caller that needs only metadata, or that
// restores the objects.
var AsHashed asHashed

type asHashed struct{}

// ApplyToGet changes no other option.
func (asHashed) ApplyToGet(*client.GetOptions) {}

// ApplyToList changes no other option.
func (asHashed) ApplyToList(*client.ListOptions) {}

// Reader reads whole objects. If an object is hashed in the cache, Reader reads it from the API server.
type Reader struct {
	Cached client.Reader
	Live   client.Reader
}

var _ client.Reader = Reader{}

// Get reads a whole object. With the option [AsHashed] the object may be hashed.
func (r Reader) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if err := r.Cached.Get(ctx, name, obj, options...); err != nil {
		return err
	}
	if !IsHashed(obj) || slices.Contains(options, client.GetOption(AsHashed)) {
		return nil
	}
	return r.readWhole(ctx, obj)
}

// List lists whole objects. With the option [AsHashed] they may be hashed. Each hashed object costs a request. An object that was deleted
// since, or that has lost the labels that the options ask for, is left out.
func (r Reader) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := r.Cached.List(ctx, list, options...); err != nil {
		return err
	}
	if !mayHaveHashed(list) || slices.Contains(options, client.ListOption(AsHashed)) {
		return nil
	}
	selector := (&client.ListOptions{}).ApplyOptions(options).LabelSelector
	var found []runtime.Object
	replaced := false
	err := meta.EachListItem(list, func(item runtime.Object) error {
		obj := item.(client.Object)
		if IsHashed(obj) {
			replaced = true
			if err := r.readWhole(ctx, obj); err != nil {
				return client.IgnoreNotFound(err)
			}
			if selector != nil && !selector.Matches(labels.Set(obj.GetLabels())) {
				return nil
			}
		}
		found = append(found, item)
		return nil
	})
	if err != nil || !replaced {
		return err
	}
	return meta.SetList(list, found)
}

// mayHaveHashed reports whether a list can hold Secrets or ConfigMaps. Objects of other kinds are never hashed.
func mayHaveHashed(list client.ObjectList) bool {
	switch list.(type) {
	case *corev1.SecretList, *corev1.ConfigMapList, *unstructured.UnstructuredList:
		return true
	}
	return false
}

// readWhole replaces the hashed object in obj by the whole one, which it reads from the API server. It does not change
// the maps of the hashed object, since the cache may share them.
func (r Reader) readWhole(ctx context.Context, obj client.Object) error {
	whole := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	whole.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), whole); err != nil {
		return err
	}
	if whole.GetUID() != obj.GetUID() { // another object of the name, which the cache does not show yet and may never show
		return apierrors.NewNotFound(schema.GroupResource{Resource: resourceOf(obj)}, obj.GetName())
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(whole).Elem())
	return nil
}

// resourceOf names the resource of a hashed object in an error.
func resourceOf(obj client.Object) string {
	switch obj.(type) {
	case *corev1.ConfigMap:
		return "configmaps"
	case *corev1.Secret:
		return "secrets"
	}
	return "objects"
}

// Cache is a cache whose reads return whole objects. Objects from its informers stay hashed.
type Cache struct {
	cache.Cache
	// Live reads from the API server.
	Live client.Reader
}

// Get is [Reader.Get].
func (c *Cache) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	return Reader{c.Cache, c.Live}.Get(ctx, name, obj, options...)
}

// List is [Reader.List].
func (c *Cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return Reader{c.Cache, c.Live}.List(ctx, list, options...)
}

// shallowCopy returns a copy whose maps of values and annotations may be replaced.
func shallowCopy(obj client.Object) client.Object {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		copied := *obj
		return &copied
	case *corev1.Secret:
		copied := *obj
		return &copied
	}
	u := obj.(*unstructured.Unstructured)
	content := maps.Clone(u.Object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = maps.Clone(metadata)
	}
	return &unstructured.Unstructured{Object: content}
}
