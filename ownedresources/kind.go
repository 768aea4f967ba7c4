package ownedresources

import (
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/compare"
)

// kind is what is found out once for a Go type, or for the kind of an unstructured object.
type kind struct {
	gvk      schema.GroupVersionKind
	typ      reflect.Type // the struct, not the pointer
	comparer *compare.Comparer
	// configuration is set if what is desired is an apply configuration, as an unstructured object.
	configuration bool
	// receivers are empty objects to read into, for objects that nobody keeps.
	receivers sync.Pool
}

// kinds caches them.
type kinds struct {
	schemas applyschema.Schemas
	known   sync.Map // kindKey → *kind
}

type kindKey struct {
	scheme *runtime.Scheme
	typ    reflect.Type
	gvk    schema.GroupVersionKind // set for unstructured objects only
	// configuration is set if what is desired is an apply configuration.
	configuration bool
}

// builtInKinds is used where no API server can be asked for schemas. What it caches depends on the key alone.
var builtInKinds = &kinds{schemas: applyschema.BuiltIn}

func (ks *kinds) of(obj client.Object, scheme *runtime.Scheme) (*kind, error) {
	key := kindKey{scheme: scheme, typ: reflect.TypeOf(obj)}
	u, untyped := obj.(*unstructured.Unstructured)
	if untyped {
		key.gvk = u.GroupVersionKind()
	}
	if known, ok := ks.known.Load(key); ok {
		return known.(*kind), nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	k := newKind(gvk, key.typ.Elem())
	if untyped {
		k.comparer, err = compare.CompileUntyped(gvk, ks.schemas)
	} else {
		k.comparer, err = compare.Compile(obj, gvk, ks.schemas)
	}
	if err != nil {
		return nil, err
	}
	known, _ := ks.known.LoadOrStore(key, k)
	return known.(*kind), nil
}

func newKind(gvk schema.GroupVersionKind, typ reflect.Type) *kind {
	k := &kind{gvk: gvk, typ: typ}
	k.receivers.New = func() any { return k.empty() }
	return k
}

// empty returns a new object of the kind.
func (k *kind) empty() client.Object {
	obj := reflect.New(k.typ).Interface().(client.Object)
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.SetGroupVersionKind(k.gvk)
	}
	return obj
}

// The ranks of kinds. Objects of a lower rank are created before objects of a higher one.
const (
	rankOfPlaces = iota // other objects are in it, or of it
	rankOfNeeds         // the API server refuses other objects that name one which does not exist
	rankOfOthers
	ranks
)

// rankOf returns the rank of a kind.
func rankOf(kind string) int {
	switch kind {
	case "Namespace", "CustomResourceDefinition":
		return rankOfPlaces
	case "ServiceAccount", "Role", "ClusterRole", "PriorityClass", "RuntimeClass":
		return rankOfNeeds
	}
	return rankOfOthers
}

// describe names an object in messages: its kind, namespace and name.
func (k *kind) describe(obj client.Object) string {
	return k.gvk.Kind + " " + client.ObjectKeyFromObject(obj).String()
}
