package operatortest

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// History is what the API server held after every write, in a namespace that was empty at first. It is for a test that
// does one thing at a time, with nobody else writing.
type History struct {
	client  client.WithWatch
	indexes map[string]client.IndexerFunc
	states  []state
}

// state holds the objects of one moment. They are shared between moments and never written to.
type state map[objectKey]client.Object

type objectKey struct {
	kind reflect.Type // the struct, not the pointer
	name string
}

// NewHistory begins with nothing. The indexes are those that the operator adds to its cache.
func NewHistory(live client.WithWatch, indexes map[string]client.IndexerFunc) *History {
	h := &History{indexes: indexes, states: []state{{}}}
	h.client = interceptor.NewClient(live, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return h.record(obj, c.Create(ctx, obj, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return h.record(obj, c.Update(ctx, obj, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, obj, patch, opts...); err != nil {
				return err
			}
			return h.recordWhole(ctx, c, obj)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return h.record(obj, c.SubResource(sub).Update(ctx, obj, opts...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return h.record(obj, c.SubResource(sub).Patch(ctx, obj, patch, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			if err := c.Delete(ctx, obj, opts...); err != nil {
				return err
			}
			left := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
			err := c.Get(ctx, client.ObjectKeyFromObject(obj), left)
			if apierrors.IsNotFound(err) {
				h.add(keyOf(obj), nil)
				return nil
			}
			return h.record(left, err)
		},
	})
	return h
}

// Client is for the writes of the test itself.
func (h *History) Client() client.WithWatch { return h.client }

// Len is how many writes there have been.
func (h *History) Len() int { return len(h.states) - 1 }

func (h *History) record(answer client.Object, err error) error {
	if err == nil {
		h.add(keyOf(answer), answer.DeepCopyObject().(client.Object))
	}
	return err
}

// recordWhole records also an object of which only the metadata was written.
func (h *History) recordWhole(ctx context.Context, c client.Client, answer client.Object) error {
	if _, part := answer.(*metav1.PartialObjectMetadata); !part {
		return h.record(answer, nil)
	}
	whole, err := c.Scheme().New(answer.GetObjectKind().GroupVersionKind())
	if err != nil {
		return err
	}
	typed := whole.(client.Object)
	return h.record(typed, c.Get(ctx, client.ObjectKeyFromObject(answer), typed))
}

// add adds the state in which the object is as given, or gone if that is nil.
func (h *History) add(key objectKey, obj client.Object) {
	next := maps.Clone(h.at(0))
	if obj == nil {
		delete(next, key)
	} else {
		next[key] = obj
	}
	h.states = append(h.states, next)
}

func keyOf(obj client.Object) objectKey {
	return objectKey{reflect.TypeOf(obj).Elem(), obj.GetName()}
}

// Now gives the present objects, in a fixed order.
func (h *History) Now() []client.Object {
	now := h.at(0)
	keys := slices.SortedFunc(maps.Keys(now), func(a, b objectKey) int {
		return strings.Compare(a.kind.Name()+"/"+a.name, b.kind.Name()+"/"+b.name)
	})
	objects := make([]client.Object, len(keys))
	for i, key := range keys {
		objects[i] = now[key]
	}
	return objects
}

// at is the state some writes ago.
func (h *History) at(lag int) state { return h.states[max(0, len(h.states)-1-lag)] }

func (h *History) get(lag int, name string, into client.Object) error {
	kind := reflect.TypeOf(into).Elem().Name()
	metadata, only := into.(*metav1.PartialObjectMetadata)
	if only {
		kind = metadata.Kind
	}
	for key, obj := range h.at(lag) {
		switch {
		case key.name != name || key.kind.Name() != kind:
			continue
		case only:
			obj.DeepCopyObject().(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta).DeepCopyInto(&metadata.ObjectMeta)
		default:
			copyInto(obj, into)
		}
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(kind)}, name)
}

func (h *History) list(lag int, into client.ObjectList, options *client.ListOptions) error {
	items, err := meta.GetItemsPtr(into)
	if err != nil {
		return err
	}
	kind := reflect.TypeOf(items).Elem().Elem()
	var found []runtime.Object
	for key, obj := range h.at(lag) {
		if key.kind == kind && h.matches(obj, options) {
			found = append(found, obj.DeepCopyObject())
		}
	}
	return meta.SetList(into, found)
}

func (h *History) matches(obj client.Object, options *client.ListOptions) bool {
	if options.FieldSelector == nil {
		return true
	}
	for _, field := range options.FieldSelector.Requirements() {
		index, known := h.indexes[field.Field]
		if !known || !slices.Contains(index(obj), field.Value) {
			return false
		}
	}
	return true
}

func copyInto(obj, into client.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(obj.DeepCopyObject()).Elem())
}
