package ownedresources

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// validate finds what is wrong with the wanted objects before any request, and gives
// those without a namespace the owner's.
func (a *applier) validate(o *owner, desired []client.Object) error {
	for i, obj := range desired {
		if err := a.accept(o, obj); err != nil {
			return fmt.Errorf("wanted object %d: %w", i+1, err)
		}
		for _, other := range desired[:i] {
			if err := a.distinct(o, obj, other); err != nil {
				return fmt.Errorf("wanted object %d: %w", i+1, err)
			}
		}
	}
	return nil
}

func (a *applier) accept(o *owner, obj client.Object) error {
	if isNil(obj) {
		return fmt.Errorf("it is nil")
	}
	k, err := a.kinds.of(obj, o.client.Scheme())
	if err != nil {
		return err
	}
	if obj.GetName() == "" {
		return fmt.Errorf("%s has no name", k.gvk.Kind)
	}
	if o.namespace == "" {
		return nil // a cluster-scoped owner may own anything
	}
	if err := a.acceptScope(o, k, obj); err != nil {
		return err
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(o.namespace)
	}
	if obj.GetNamespace() != o.namespace {
		return fmt.Errorf("%s is in another namespace than %s: the garbage collector would delete it at once", k.describe(obj), o)
	}
	return nil
}

func (a *applier) acceptScope(o *owner, k *kind, obj client.Object) error {
	known, ok := a.scopes.Load(k)
	if !ok {
		namespaced, err := o.client.IsObjectNamespaced(obj)
		switch {
		case meta.IsNoMatchError(err):
			return nil // not served, or a fake client that knows no scopes: the request will tell
		case err != nil:
			return fmt.Errorf("scope of %s: %w", k.gvk.Kind, err)
		}
		known, _ = a.scopes.LoadOrStore(k, namespaced)
	}
	if namespaced, _ := known.(bool); !namespaced {
		return fmt.Errorf("%s %s is cluster-scoped, and %s is not: the garbage collector would delete it at once", k.gvk.Kind, obj.GetName(), o)
	}
	return nil
}

func (a *applier) distinct(o *owner, x, y client.Object) error {
	if x.GetName() != y.GetName() || x.GetNamespace() != y.GetNamespace() {
		return nil
	}
	one, err := a.kinds.of(x, o.client.Scheme())
	if err != nil {
		return err
	}
	other, err := a.kinds.of(y, o.client.Scheme())
	if err != nil {
		return err
	}
	if one.gvk.GroupKind() != other.gvk.GroupKind() {
		return nil
	}
	return fmt.Errorf("%s is wanted twice", one.describe(x))
}
