package references

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/hashedvalues"
)

// Reader reads the kinds that a reconciler watches. An object that it returns is never older than the event that triggered the reconcile:
// the object comes from the informer that delivered the event, or from the API server.
type Reader struct {
	// Forms says in which form each kind is watched.
	Forms *Forms
	// Cache reads from the cache.
	Cache client.Reader
	// Live reads from the API server. If it is nil, Cache is used instead.
	Live client.Reader
}

var _ client.Reader = &Reader{}

// Get reads an object. For a kind that is not watched, it returns an error.
func (r *Reader) Get(ctx context.Context, name client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	switch from, gvk, err := r.Forms.sourceOf(obj); {
	case err != nil:
		return err
	case from == wholeObjects:
		return r.getMetadata(ctx, name, obj.(*metav1.PartialObjectMetadata), gvk, opts)
	case from == server && r.Live != nil:
		return r.Live.Get(ctx, name, obj, opts...)
	}
	return r.Cache.Get(ctx, name, obj, opts...)
}

// List lists objects. For a kind that is not watched, it returns an error. It also returns an error if whole objects are asked for, and
// only the metadata of their kind is watched.
func (r *Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch from, gvk, err := r.Forms.sourceOf(list); {
	case err != nil:
		return err
	case from == wholeObjects:
		return r.listMetadata(ctx, list.(*metav1.PartialObjectMetadataList), gvk, opts)
	case from == server && formOf(list) != metadata && r.Forms.kinds[gvk.GroupKind()] == metadata:
		return fmt.Errorf("list of %T, of which the steps watch no more than the metadata: read these objects by name, or list their metadata", list)
	case from == server && r.Live != nil:
		return r.Live.List(ctx, list, opts...)
	}
	return r.Cache.List(ctx, list, opts...)
}

// CachesWhole reports whether objects of this type are read from the cache, and as whole objects.
func (r *Reader) CachesWhole(obj client.Object) bool {
	from, _, err := r.Forms.sourceOf(obj)
	return err == nil && from == cache && formOf(obj) != metadata
}

// Epoch returns how often the resource versions of the watched objects went back.
func (r *Reader) Epoch() uint64 { return r.Forms.Epoch.Current() }

// InCache reports whether objects of this type are read from the cache, as whole objects or as metadata.
func (r *Reader) InCache(obj client.Object) bool {
	from, _, err := r.Forms.sourceOf(obj)
	return err == nil && from != server
}

// getMetadata reads the metadata of an object that the cache holds as a whole.
func (r *Reader) getMetadata(ctx context.Context, name client.ObjectKey, into *metav1.PartialObjectMetadata, gvk schema.GroupVersionKind, opts []client.GetOption) error {
	whole, err := r.Forms.empty(gvk)
	if err != nil {
		return err
	}
	if err := r.Cache.Get(ctx, name, whole, append(slices.Clip(opts), client.UnsafeDisableDeepCopy, hashedvalues.AsHashed)...); err != nil {
		return err
	}
	copyMetadata(whole, into, gvk)
	return nil
}

// listMetadata lists the metadata of objects that the cache holds as a whole.
func (r *Reader) listMetadata(ctx context.Context, into *metav1.PartialObjectMetadataList, gvk schema.GroupVersionKind, opts []client.ListOption) error {
	whole, err := r.Forms.emptyList(gvk)
	if err != nil {
		return err
	}
	if err := r.Cache.List(ctx, whole, append(slices.Clip(opts), client.UnsafeDisableDeepCopy, hashedvalues.AsHashed)...); err != nil {
		return err
	}
	into.ListMeta = metav1.ListMeta{ResourceVersion: whole.GetResourceVersion(), Continue: whole.GetContinue(), RemainingItemCount: whole.GetRemainingItemCount()}
	into.Items = make([]metav1.PartialObjectMetadata, meta.LenList(whole))
	i := 0
	return meta.EachListItem(whole, func(item runtime.Object) error {
		copyMetadata(item.(client.Object), &into.Items[i], gvk)
		i++
		return nil
	})
}

func copyMetadata(whole client.Object, into *metav1.PartialObjectMetadata, gvk schema.GroupVersionKind) {
	meta.AsPartialObjectMetadata(whole).DeepCopyInto(into)
	into.Annotations = hashedvalues.WithoutMark(into.Annotations)
	into.SetGroupVersionKind(gvk)
}

// PastCache reads the metadata of an object from the API server. If the object does not exist, found is nil. PastCache sends a list request
// for this name, because the operator is allowed to list all kinds in its cache. If the request fails, it is not known whether the object
// exists, and PastCache returns the error.
func PastCache(ctx context.Context, live client.Reader, gvk schema.GroupVersionKind, name client.ObjectKey) (found *metav1.PartialObjectMetadata, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err = live.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{"metadata.name": name.Name})
	if err != nil {
		return nil, fmt.Errorf("look for %s %s, which the cache does not show, on the API server: %w", gvk.Kind, name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	return &list.Items[0], nil
}
