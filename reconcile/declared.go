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

// declaredClient is the client that steps get. It refuses to read kinds that no step watches.
type declaredClient struct {
	client.Client
	kinds map[schema.GroupKind]bool
	typed map[reflect.Type]bool // the types of the declared kinds
	types sync.Map              // other reflect.Types that are known to be allowed: lists
}

func newDeclaredClient(c client.Client, kinds ...client.Object) (*declaredClient, error) {
	d := &declaredClient{Client: c, kinds: map[schema.GroupKind]bool{}, typed: map[reflect.Type]bool{}}
	for _, obj := range kinds {
		gvk, err := apiutil.GVKForObject(obj, c.Scheme())
		if err != nil {
			return nil, fmt.Errorf("kind of %T: %w: add its types to the manager's scheme", obj, err)
		}
		d.kinds[gvk.GroupKind()] = true
		if !sharedType(obj) {
			d.typed[reflect.TypeOf(obj)] = true
		}
	}
	return d, nil
}

func (d *declaredClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := d.allow(obj); err != nil {
		return err
	}
	return d.Client.Get(ctx, key, obj, opts...)
}

func (d *declaredClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := d.allow(list); err != nil {
		return err
	}
	return d.Client.List(ctx, list, opts...)
}

func (d *declaredClient) allow(obj runtime.Object) error {
	t := reflect.TypeOf(obj)
	if d.typed[t] {
		return nil
	}
	if _, allowed := d.types.Load(t); allowed {
		return nil
	}
	gvk, err := apiutil.GVKForObject(obj, d.Scheme())
	if err != nil {
		return err
	}
	kind := gvk.GroupKind()
	if _, list := obj.(client.ObjectList); list {
		kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	}
	if !d.kinds[kind] {
		return fmt.Errorf("read of %s, which no step watches: give the step reconcile.Watching, so that a change of it brings a pass, or read it with a client of your own", kind)
	}
	if !sharedType(obj) {
		d.types.Store(t, nil)
	}
	return nil
}

// sharedType reports whether objects of several kinds have this Go type.
func sharedType(obj runtime.Object) bool {
	switch obj.(type) {
	case runtime.Unstructured, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}
