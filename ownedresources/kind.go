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

	"github.com/opblocks/opblocks/internal/plan"
)

// kind is what has to be known of a Go type once.
type kind struct {
	gvk  schema.GroupVersionKind
	typ  reflect.Type // the struct, not the pointer
	plan *plan.Plan
}

type kindKey struct {
	scheme *runtime.Scheme
	typ    reflect.Type
}

// kinds remembers what is a function of the key alone.
var kinds sync.Map // kindKey → *kind

func kindOf(obj client.Object, scheme *runtime.Scheme) (*kind, error) {
	key := kindKey{scheme: scheme, typ: reflect.TypeOf(obj)}
	if known, ok := kinds.Load(key); ok {
		return known.(*kind), nil
	}
	if _, untyped := obj.(runtime.Unstructured); untyped {
		return nil, fmt.Errorf("%T: give a typed object; unstructured ones cannot be compared with defaults in mind", unstructured.Unstructured{})
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	p, err := plan.Compile(obj, gvk, plan.BuiltIn)
	if err != nil {
		return nil, err
	}
	known, _ := kinds.LoadOrStore(key, &kind{gvk: gvk, typ: key.typ.Elem(), plan: p})
	return known.(*kind), nil
}

func (k *kind) empty() client.Object { return reflect.New(k.typ).Interface().(client.Object) }

func (k *kind) describe(obj client.Object) string {
	return k.gvk.Kind + " " + client.ObjectKeyFromObject(obj).String()
}
