package owned

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/compare"
)

// Kind is what is looked up once for a Go type of objects, or for the kind of an unstructured object.
type Kind struct {
	GVK      schema.GroupVersionKind
	Type     reflect.Type // the struct, not the pointer
	Comparer *compare.Comparer
	// configuration is set if the children are built as apply configurations, which are then handled as unstructured objects.
	configuration bool
	// Receivers is a pool of empty objects. An object that nobody keeps after the read is read into one of them.
	Receivers sync.Pool
}

// Kinds caches [Kind] values.
type Kinds struct {
	Schemas applyschema.Schemas
	known   sync.Map // kindKey → *Kind
}

type kindKey struct {
	scheme *runtime.Scheme
	typ    reflect.Type
	gvk    schema.GroupVersionKind // set for unstructured objects only
	// configuration is set if the children are built as apply configurations.
	configuration bool
}

// BuiltIn is used where no API server can be asked for schemas. All callers can share it, because an entry depends only on its key.
var BuiltIn = &Kinds{Schemas: applyschema.BuiltIn}

// Of returns the [Kind] of an object, and looks it up only once. If the scheme lacks the type, the error says what to add to the scheme.
func (ks *Kinds) Of(obj client.Object, scheme *runtime.Scheme) (*Kind, error) {
	key := kindKey{scheme: scheme, typ: reflect.TypeOf(obj)}
	u, untyped := obj.(*unstructured.Unstructured)
	if untyped {
		key.gvk = u.GroupVersionKind()
	}
	if known, ok := ks.known.Load(key); ok {
		return known.(*Kind), nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	k := newKind(gvk, key.typ.Elem())
	if untyped {
		k.Comparer, err = compare.CompileUntyped(gvk, ks.Schemas)
	} else {
		k.Comparer, err = compare.Compile(obj, gvk, ks.Schemas)
	}
	if err != nil {
		return nil, err
	}
	known, _ := ks.known.LoadOrStore(key, k)
	return known.(*Kind), nil
}

func newKind(gvk schema.GroupVersionKind, typ reflect.Type) *Kind {
	k := &Kind{GVK: gvk, Type: typ}
	k.Receivers.New = func() any { return k.Empty() }
	return k
}

// Empty returns a new object of the kind.
func (k *Kind) Empty() client.Object {
	obj := reflect.New(k.Type).Interface().(client.Object)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.SetGroupVersionKind(k.GVK)
	}
	return obj
}

// The ranks of kinds: objects of a lower rank are created before objects of a higher rank.
const (
	rankOfPlaces = iota // Namespace and CustomResourceDefinition: other objects are in the namespace, or have the kind that is defined
	rankOfNeeds         // kinds such as ServiceAccount: the API server refuses an object that names a missing object of such a kind
	rankOfOthers
	Ranks
)

// RankOf returns the rank of a kind.
func RankOf(kind string) int {
	switch kind {
	case "Namespace", "CustomResourceDefinition":
		return rankOfPlaces
	case "ServiceAccount", "Role", "ClusterRole", "PriorityClass", "RuntimeClass":
		return rankOfNeeds
	}
	return rankOfOthers
}

// Describe names an object for messages: its kind, its namespace if it has one, and its name.
func (k *Kind) Describe(obj client.Object) string {
	return k.GVK.Kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}

// LikeDesired converts a live object to the type of the desired object.
func (d *Declared) LikeDesired(live client.Object) (client.Object, error) {
	if _, untyped := live.(*unstructured.Unstructured); untyped || !d.Kind.configuration {
		return live, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(d.Kind.GVK)
	return u, nil
}

// OfConfiguration returns the [Kind] of a child that is built as an apply configuration. sample is an empty object of the type in which its
// live objects are read.
func (ks *Kinds) OfConfiguration(sample client.Object, scheme *runtime.Scheme) (*Kind, error) {
	key := kindKey{scheme: scheme, typ: reflect.TypeOf(sample), configuration: true}
	if known, ok := ks.known.Load(key); ok {
		return known.(*Kind), nil
	}
	gvk, err := apiutil.GVKForObject(sample, scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	k := newKind(gvk, key.typ.Elem())
	k.configuration = true
	if k.Comparer, err = compare.CompileUntyped(gvk, ks.Schemas); err != nil {
		return nil, err
	}
	known, _ := ks.known.LoadOrStore(key, k)
	return known.(*Kind), nil
}

// AsLive converts the API server's answer to a write to the type in which live objects of the kind are read.
func (k *Kind) AsLive(obj client.Object) (client.Object, error) {
	u, untyped := obj.(*unstructured.Unstructured)
	if !untyped || reflect.TypeOf(obj).Elem() == k.Type {
		return obj, nil
	}
	live := k.Empty()
	return live, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, live)
}

// Release empties a receiver (an object that Receivers held) and returns it to the pool. An unstructured receiver would lose its kind with
// its content, so it is not used again.
func (k *Kind) Release(receiver client.Object) {
	if _, untyped := receiver.(*unstructured.Unstructured); untyped {
		return
	}
	reflect.ValueOf(receiver).Elem().SetZero()
	k.Receivers.Put(receiver)
}

// Forget drops the [Kind] that was looked up for a kind of objects, whose CustomResourceDefinition may have been replaced.
func (ks *Kinds) Forget(gvk schema.GroupVersionKind) {
	ks.known.Range(func(key, known any) bool {
		if known.(*Kind).GVK == gvk {
			ks.known.Delete(key)
		}
		return true
	})
}
