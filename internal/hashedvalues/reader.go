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

// AsHashed is an option of a read. With it, the result may have hashes in place of long values. It is for callers that need only metadata,
// or that call [Restore].
var AsHashed asHashed

type asHashed struct{}

// ApplyToGet implements [client.GetOption]. It changes no other option.
func (asHashed) ApplyToGet(*client.GetOptions) {}

// ApplyToList implements [client.ListOption]. It changes no other option.
func (asHashed) ApplyToList(*client.ListOptions) {}

// Reader returns objects with all their values. If the cache has hashes in place of an object's values, Reader reads the object from the
// API server.
type Reader struct {
	Cached client.Reader
	Live   client.Reader
}

var _ client.Reader = Reader{}

// Get reads an object with all its values. With the option [AsHashed], the object may have hashes in place of long values.
func (r Reader) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if err := r.Cached.Get(ctx, name, obj, options...); err != nil {
		return err
	}
	if !IsHashed(obj) || slices.Contains(options, client.GetOption(AsHashed)) {
		return nil
	}
	return r.readWhole(ctx, obj)
}

// List lists objects with all their values. With the option [AsHashed], they may have hashes in place of long values. Otherwise each object
// that has hashes in the cache costs a request. If such an object was deleted since, or has lost the labels that the options ask for, List
// leaves it out.
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

// mayHaveHashed reports whether a list can contain Secrets or ConfigMaps. Only their values are replaced by hashes.
func mayHaveHashed(list client.ObjectList) bool {
	switch list.(type) {
	case *corev1.SecretList, *corev1.ConfigMapList, *unstructured.UnstructuredList:
		return true
	}
	return false
}

// readWhole replaces obj, an object with hashes, by the object that it reads from the API server. It does not change the maps of the old
// object, because the cache may share them.
func (r Reader) readWhole(ctx context.Context, obj client.Object) error {
	whole := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	whole.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), whole); err != nil {
		return err
	}
	if whole.GetUID() != obj.GetUID() { // another object of this name, which the cache does not show yet and may never show
		return apierrors.NewNotFound(schema.GroupResource{Resource: resourceOf(obj)}, obj.GetName())
	}
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(whole).Elem())
	return nil
}

// resourceOf returns the resource of a Secret or ConfigMap, for errors.
func resourceOf(obj client.Object) string {
	switch obj.(type) {
	case *corev1.ConfigMap:
		return "configmaps"
	case *corev1.Secret:
		return "secrets"
	}
	return "objects"
}

// Cache is a cache whose reads return objects with all their values. The objects of its informers keep the hashes.
type Cache struct {
	cache.Cache
	// Live reads from the API server.
	Live client.Reader
}

// Get does the same as [Reader.Get].
func (c *Cache) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	return Reader{c.Cache, c.Live}.Get(ctx, name, obj, options...)
}

// List does the same as [Reader.List].
func (c *Cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return Reader{c.Cache, c.Live}.List(ctx, list, options...)
}

// shallowCopy returns a copy of an object. The copy's annotations and its maps of values may be replaced.
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
