package reconcile

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/servedkinds"
)

// List lists objects into an empty list of their kind, such as &appsv1.DeploymentList{}, and returns an iterator over them.
// The objects are not copied from the cache: do not change them. The iterator leaves out items that are not of type T. The
// error of the reader is wrapped.
func List[T client.Object](ctx context.Context, r client.Reader, into client.ObjectList, options ...client.ListOption) (iter.Seq[T], error) {
	if err := r.List(ctx, into, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list %T: %w", into, err)
	}
	return func(yield func(T) bool) {
		_ = meta.EachListItem(into, func(item runtime.Object) error { // the error only ends the iteration
			if typed, ok := item.(T); ok && !yield(typed) {
				return context.Canceled
			}
			return nil
		})
	}, nil
}

// stepClient is the client that steps use. It refuses to read kinds that no step has declared. It reads kinds that are only
// referenced from the API server, since the cache has no more than their metadata.
type stepClient struct {
	client.Client
	live    client.Reader // reads from the API server; nil without a manager
	kinds   map[schema.GroupKind]access
	watched map[reflect.Type]bool // the types of the watched kinds
	others  sync.Map              // reflect.Type → access, of other types that were read, such as lists

	// served are the watches of the kinds that the API server may not serve. A read of the cache would start a watch that
	// never ends, and wait for it.
	served map[schema.GroupVersionKind]servedKind
}

// servedKind permits reads of the cache while the API server serves a kind.
type servedKind interface {
	// Acquire reports whether reads are permitted. If so, Release must be called after them.
	Acquire() bool
	Release()
}

var _ servedKind = &servedkinds.Watch{}

// access is how steps may read a kind. A higher value allows more.
type access int

const (
	undeclared access = iota
	referenced
	watched
)

func newStepClient(c client.Client, watchedKinds, referencedKinds []client.Object) (*stepClient, error) {
	s := &stepClient{Client: c, kinds: map[schema.GroupKind]access{}, watched: map[reflect.Type]bool{}}
	for access, objs := range map[access][]client.Object{watched: watchedKinds, referenced: referencedKinds} {
		for _, obj := range objs {
			gvk, err := apiutil.GVKForObject(obj, c.Scheme())
			if err != nil {
				return nil, fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", obj, err)
			}
			s.kinds[gvk.GroupKind()] = max(access, s.kinds[gvk.GroupKind()])
			if access == watched && !isSharedType(obj) {
				s.watched[reflect.TypeOf(obj)] = true
			}
		}
	}
	return s, nil
}

func (s *stepClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	reader := client.Reader(s.Client)
	switch access, err := s.accessTo(obj); {
	case err != nil:
		return err
	case access == referenced && s.live != nil && !isMetadata(obj):
		reader = s.live
	}
	release, err := s.acquire(obj)
	if err != nil {
		return err
	}
	defer release()
	return reader.Get(ctx, key, obj, opts...)
}

func (s *stepClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch access, err := s.accessTo(list); {
	case err != nil:
		return err
	case access == referenced && !isMetadata(list):
		return fmt.Errorf("list of %T, which the steps only reference: read these objects by name, or list their metadata", list)
	}
	release, err := s.acquire(list)
	if err != nil {
		return err
	}
	defer release()
	return s.Client.List(ctx, list, opts...)
}

// addServed adds kinds that the API server may not serve.
func (s *stepClient) addServed(watches map[schema.GroupVersionKind]*servedkinds.Watch) {
	for gvk, w := range watches {
		if s.served == nil {
			s.served = map[schema.GroupVersionKind]servedKind{}
		}
		s.served[gvk] = w
	}
}

// acquire returns an error if the kind of an object or a list is not served now. Otherwise the caller must call release after
// the read.
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
	case isMetadata(obj):
		return nil, fmt.Errorf("read of the metadata of %s, of which the cache holds whole objects while it is served: read those", gvk.Kind)
	case !w.Acquire():
		return nil, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	}
	return w.Release, nil
}

// CachesWhole reports whether the cache holds whole objects of this kind, and not only their metadata. The inputs of package
// ownedresources ask for it.
func (s *stepClient) CachesWhole(obj client.Object) bool {
	access, err := s.accessTo(obj)
	return err == nil && access == watched
}

// accessTo returns how steps may read the kind of an object or a list.
func (s *stepClient) accessTo(obj runtime.Object) (access, error) {
	t := reflect.TypeOf(obj)
	if s.watched[t] {
		return watched, nil
	}
	if known, ok := s.others.Load(t); ok {
		return known.(access), nil
	}
	gvk, err := apiutil.GVKForObject(obj, s.Scheme())
	if err != nil {
		return undeclared, err
	}
	kind := gvk.GroupKind()
	if _, list := obj.(client.ObjectList); list {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	allowed := s.kinds[kind]
	if allowed == undeclared {
		return undeclared, fmt.Errorf("read of %s, which no step watches: add reconcile.Watching or reconcile.Referencing to the step, so that a change of it triggers a reconcile, or read it with a client of your own", kind)
	}
	if !isSharedType(obj) {
		s.others.Store(t, allowed)
	}
	return allowed, nil
}

func isMetadata(obj runtime.Object) bool {
	switch obj.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}

// isSharedType reports whether objects of several kinds have this Go type.
func isSharedType(obj runtime.Object) bool {
	_, untyped := obj.(runtime.Unstructured)
	return untyped || isMetadata(obj)
}
