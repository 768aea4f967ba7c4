package operatortest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// History records the objects of a namespace after every write. The namespace is empty at first. The test must do one thing
// at a time, and nobody else may write.
type History struct {
	client    client.WithWatch
	namespace string
	indexes   map[string]client.IndexerFunc
	states    []state
}

// state holds all objects at one moment. They are shared between moments and never changed.
type state map[objectKey]client.Object

type objectKey struct {
	kind reflect.Type // the struct, not the pointer
	name string
}

// NewHistory returns an empty history. From then on it records the writes of the user, too. The indexes are those that the
// operator adds to its cache.
func NewHistory(u *User, indexes map[string]client.IndexerFunc) *History {
	h := &History{namespace: u.Namespace, indexes: indexes, states: []state{{}}}
	h.client = interceptor.NewClient(u.WithWatch, interceptor.Funcs{
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
	u.WithWatch = h.client
	return h
}

// Len returns the number of writes.
func (h *History) Len() int { return len(h.states) - 1 }

func (h *History) record(answer client.Object, err error) error {
	if err == nil {
		h.add(keyOf(answer), answer.DeepCopyObject().(client.Object))
	}
	return err
}

// recordWhole records the whole object, also if only its metadata was written.
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

// add adds a state with the object as given, or without it if obj is nil.
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

// Objects returns the present objects, in a fixed order.
func (h *History) Objects() []client.Object {
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

// at returns the state some writes ago.
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

// Describe returns a text that lists the present objects: of each its owner, its labels, and, as JSON, what the function
// returns for it. The namespace is called namespace, so that texts of several runs can be compared.
func (h *History) Describe(t testing.TB, result func(client.Object) any) string {
	t.Helper()
	var all strings.Builder
	for _, obj := range h.Objects() {
		owned := ""
		if ref := metav1.GetControllerOf(obj); ref != nil {
			owned = ref.Kind + " " + ref.Name
		}
		encoded, err := json.Marshal(result(obj))
		require.NoError(t, err)
		fmt.Fprintf(&all, "%T %s of %q, labels %v\n\t%s\n", obj, obj.GetName(), owned, obj.GetLabels(), encoded)
	}
	return strings.ReplaceAll(all.String(), h.namespace, "namespace")
}
