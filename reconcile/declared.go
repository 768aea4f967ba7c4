package reconcile

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// declaredClient is the client that steps get. It refuses to read kinds that no step watches, and
// reads those that are only referred to from the API server.
type declaredClient struct {
	client.Client
	live     client.Reader // past the cache; nil without a manager
	kinds    map[schema.GroupKind]access
	declared map[reflect.Type]bool // the types of the watched kinds
	types    sync.Map              // reflect.Type → access, of others that were read: lists
}

type access int

const (
	none access = iota
	referred
	watched
)

func newDeclaredClient(c client.Client, watchedKinds, referredKinds []client.Object) (*declaredClient, error) {
	d := &declaredClient{Client: c, kinds: map[schema.GroupKind]access{}, declared: map[reflect.Type]bool{}}
	for kind, objs := range map[access][]client.Object{watched: watchedKinds, referred: referredKinds} {
		for _, obj := range objs {
			gvk, err := apiutil.GVKForObject(obj, c.Scheme())
			if err != nil {
				return nil, fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", obj, err)
			}
			d.kinds[gvk.GroupKind()] = max(kind, d.kinds[gvk.GroupKind()])
			if kind == watched && !sharedType(obj) {
				d.declared[reflect.TypeOf(obj)] = true
			}
		}
	}
	return d, nil
}

func (d *declaredClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	reader := client.Reader(d.Client)
	switch kind, err := d.access(obj); {
	case err != nil:
		return err
	case kind == referred && d.live != nil && !isMetadata(obj):
		reader = d.live
	}
	return reader.Get(ctx, key, obj, opts...)
}

func (d *declaredClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch kind, err := d.access(list); {
	case err != nil:
		return err
	case kind == referred && !isMetadata(list):
		return fmt.Errorf("list of %T, which the steps only refer to: read these objects by name, or their metadata", list)
	}
	return d.Client.List(ctx, list, opts...)
}

func (d *declaredClient) access(obj runtime.Object) (access, error) {
	t := reflect.TypeOf(obj)
	if d.declared[t] {
		return watched, nil
	}
	if known, ok := d.types.Load(t); ok {
		return known.(access), nil
	}
	gvk, err := apiutil.GVKForObject(obj, d.Scheme())
	if err != nil {
		return none, err
	}
	kind := gvk.GroupKind()
	if _, list := obj.(client.ObjectList); list {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	allowed := d.kinds[kind]
	if allowed == none {
		return none, fmt.Errorf("read of %s, which no step watches: give the step reconcile.Watching or reconcile.Referencing, so that a change of it brings a pass, or read it with a client of your own", kind)
	}
	if !sharedType(obj) {
		d.types.Store(t, allowed)
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

// sharedType reports whether objects of several kinds have this Go type.
func sharedType(obj runtime.Object) bool {
	_, untyped := obj.(runtime.Unstructured)
	return untyped || isMetadata(obj)
}
