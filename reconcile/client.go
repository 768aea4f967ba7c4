package reconcile

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/references"
	"github.com/opblocks/opblocks/internal/servedkinds"
	"github.com/opblocks/opblocks/internal/step"
)

// List lists objects into an empty list of their kind, such as &appsv1.DeploymentList{}, and returns an iterator over them.
// The objects share memory with the cache: do not change them. The iterator leaves out items that are not of type T. The
// error of the reader is wrapped.
func List[T client.Object](ctx context.Context, r client.Reader, into client.ObjectList, options ...client.ListOption) (iter.Seq[T], error) {
	if err := r.List(ctx, into, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list %T: %w", into, err)
	}
	return func(yield func(T) bool) {
		_ = meta.EachListItem(into, func(item runtime.Object) error { // the only error is the one that ends the iteration
			if typed, ok := item.(T); ok && !yield(typed) {
				return context.Canceled
			}
			return nil
		})
	}, nil
}

// stepClient is the client that steps use. It refuses to read kinds that no step has declared. Each kind is watched in one form:
// as typed objects, as unstructured objects, or as metadata. An object of that form is read from the cache: see
// [references.Forms]. An object of another form is read from the API server.
type stepClient struct {
	client.Client
	reader references.Reader

	// served has the watches of the kinds that the API server may not serve. If such a kind is not served, a read through
	// the cache would start a watch that never ends, and wait for it.
	served map[schema.GroupVersionKind]servedKind
}

// servedKind allows reads from the cache while the API server serves a kind.
type servedKind interface {
	// Acquire reports whether reads are allowed. If so, the caller must call Release after the read.
	Acquire() bool
	Release()
}

var _ servedKind = &servedkinds.Watch{}

// PastCache reads the metadata of an object from the API server. Package secrets calls it after a read that did not find the object. If the
// object does not exist, found is nil. If the cache is not used for reads of this form of the kind, isCached is false, and no request is
// sent.
func (s *stepClient) PastCache(
	ctx context.Context, obj client.Object, gvk schema.GroupVersionKind, name client.ObjectKey,
) (found *metav1.PartialObjectMetadata, isCached bool, err error) {
	if s.reader.Live == nil || !s.reader.InCache(obj) {
		return nil, false, nil
	}
	found, err = references.PastCache(ctx, s.reader.Live, gvk, name)
	return found, true, err
}

func newStepClient(c client.Client, watchedKinds []client.Object, refs []references.Reference) (*stepClient, error) {
	forms, err := references.NewForms(c.Scheme(), watchedKinds, refs)
	if err != nil {
		return nil, err
	}
	return &stepClient{Client: c, reader: references.Reader{Forms: forms, Cache: c}}, nil
}

func (s *stepClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	release, err := s.acquire(obj)
	if err != nil {
		return err
	}
	defer release()
	return s.reader.Get(ctx, key, obj, opts...)
}

func (s *stepClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	release, err := s.acquire(list)
	if err != nil {
		return err
	}
	defer release()
	return s.reader.List(ctx, list, opts...)
}

// addServed adds the watches of kinds that the API server may not serve.
func (s *stepClient) addServed(watches map[schema.GroupVersionKind]*servedkinds.Watch) {
	for gvk, w := range watches {
		if s.served == nil {
			s.served = map[schema.GroupVersionKind]servedKind{}
		}
		s.served[gvk] = w
	}
}

// acquire returns an error if the API server does not serve the kind of an object or a list now. Otherwise the caller must
// call release after the read.
func (s *stepClient) acquire(obj runtime.Object) (release func(), err error) {
	if len(s.served) == 0 {
		return func() {}, nil
	}
	gvk, err := apiutil.GVKForObject(obj, s.Scheme())
	if err != nil {
		return nil, err
	}
	if _, list := obj.(client.ObjectList); list {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	w := s.served[gvk]
	switch {
	case w == nil:
		return func() {}, nil
	case !w.Acquire():
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return w.Release, nil
}

// CachesWhole reports whether the object is read from the cache, and is not only metadata. The inputs of package ownedresources
// ask for it.
func (s *stepClient) CachesWhole(obj client.Object) bool { return s.reader.CachesWhole(obj) }

// Epoch returns a number that changes when resource versions that were seen before may be used again for other
// contents, such as after a restore of etcd.
func (s *stepClient) Epoch() uint64 { return s.reader.Epoch() }

var _ step.Reader = &stepClient{}
