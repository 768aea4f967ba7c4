package ownedresources

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sjson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/compare"
)

// BuildApply is [BuildOrError] for an apply configuration, such as one of k8s.io/client-go/applyconfigurations. sample
// is an empty object of the same kind, such as &appsv1.Deployment{}: the live object is read in this type, from the
// cache.
//
// An apply configuration says exactly which fields are desired: a zero that it sets is applied, where a Go struct
// leaves it out. The methods of the child take its objects as *unstructured.Unstructured.
//
//	ownedresources.BuildApply(&appsv1.Deployment{}, func(app *App) (*appsv1ac.DeploymentApplyConfiguration, error) { … })
func BuildApply[T client.Object, C any, P interface {
	*C
	runtime.ApplyConfiguration
}](sample client.Object, f func(owner T) (P, error), options ...ChildOption) *Child[T, *unstructured.Unstructured] {
	child := newChild[T, *unstructured.Unstructured](sample, f, options, func(r *reconciliation) error {
		configuration, err := f(r.object.(T))
		if err != nil || configuration == nil {
			return err
		}
		return r.addConfiguration(configuration)
	})
	child.configuration = true
	return child
}

func (r *reconciliation) addConfiguration(configuration runtime.ApplyConfiguration) error {
	obj, err := fromConfiguration(configuration, r.kinds[r.building].gvk)
	if err == nil {
		r.add(obj)
	}
	return err
}

// fromConfiguration returns an apply configuration as an unstructured object of a kind.
func fromConfiguration(configuration runtime.ApplyConfiguration, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("apply configuration %T: it has no JSON form: %w", configuration, err)
	}
	obj := &unstructured.Unstructured{}
	if err := k8sjson.Unmarshal(data, &obj.Object); err != nil {
		return nil, fmt.Errorf("apply configuration %T: %w", configuration, err)
	}
	if given := obj.GroupVersionKind(); !given.Empty() && given != gvk {
		return nil, fmt.Errorf("apply configuration %T is of %s, and the sample that was given with it of %s: give a sample of the same kind", configuration, given, gvk)
	}
	obj.SetGroupVersionKind(gvk)
	return obj, nil
}

// likeDesired returns a live object in the type of the desired one.
func (d *declared) likeDesired(live client.Object) (client.Object, error) {
	if _, untyped := live.(*unstructured.Unstructured); untyped || !d.kind.configuration {
		return live, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(d.kind.gvk)
	return u, nil
}

// ofConfiguration returns the kind of apply configurations whose live objects have the type of sample.
func (ks *kinds) ofConfiguration(sample client.Object, scheme *runtime.Scheme) (*kind, error) {
	key := kindKey{scheme: scheme, typ: reflect.TypeOf(sample), configuration: true}
	if known, ok := ks.known.Load(key); ok {
		return known.(*kind), nil
	}
	gvk, err := apiutil.GVKForObject(sample, scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	k := newKind(gvk, key.typ.Elem())
	k.configuration = true
	if k.comparer, err = compare.CompileUntyped(gvk, ks.schemas); err != nil {
		return nil, err
	}
	known, _ := ks.known.LoadOrStore(key, k)
	return known.(*kind), nil
}

// asLive returns the API server's answer to a write in the type of the kind's live objects.
func (k *kind) asLive(obj client.Object) (client.Object, error) {
	u, untyped := obj.(*unstructured.Unstructured)
	if !untyped || reflect.TypeOf(obj).Elem() == k.typ {
		return obj, nil
	}
	live := k.empty()
	return live, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, live)
}
