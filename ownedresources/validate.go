package ownedresources

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// desired is an object that is wanted.
type desired struct {
	kind    *kind
	object  client.Object
	options *childOptions
}

// desire finds the kinds of some objects.
func (a *applier) desire(o *owner, objs []client.Object) ([]desired, error) {
	all := make([]desired, len(objs))
	for i, obj := range objs {
		if isNil(obj) {
			return nil, fmt.Errorf("wanted object %d: it is nil", i+1)
		}
		k, err := a.kinds.of(obj, o.client.Scheme())
		if err != nil {
			return nil, fmt.Errorf("wanted object %d: %w", i+1, err)
		}
		all[i] = desired{k, obj, &childOptions{}}
	}
	return all, a.validate(o, all)
}

// validate finds what is wrong with the wanted objects before any request, and gives
// those without a namespace the owner's.
func (a *applier) validate(o *owner, all []desired) error {
	for i, d := range all {
		if err := a.accept(o, d.kind, d.object); err != nil {
			return fmt.Errorf("wanted object %d: %w", i+1, err)
		}
		for _, other := range all[:i] {
			if other.is(d.kind.gvk, d.object) {
				return fmt.Errorf("wanted object %d: %s is wanted twice", i+1, d.kind.describe(d.object))
			}
		}
	}
	return nil
}

// is reports whether an object of a kind has the desired one's name.
func (d *desired) is(gvk schema.GroupVersionKind, obj client.Object) bool {
	return d.object.GetName() == obj.GetName() && d.object.GetNamespace() == obj.GetNamespace() &&
		d.kind.gvk.GroupKind() == gvk.GroupKind()
}

func (a *applier) accept(o *owner, k *kind, obj client.Object) error {
	if obj.GetName() == "" {
		return fmt.Errorf("%s has no name", k.gvk.Kind)
	}
	if o.namespace == "" { // a cluster-scoped owner may own anything
		if namespaced, known, err := a.isNamespaced(o, k, obj); err != nil || known && namespaced && obj.GetNamespace() == "" {
			return cmp.Or(err, fmt.Errorf("%s has no namespace, and %s has none to give it: set one", k.describe(obj), o))
		}
		return nil
	}
	switch namespaced, known, err := a.isNamespaced(o, k, obj); {
	case err != nil:
		return err
	case known && !namespaced:
		return fmt.Errorf("%s %s is cluster-scoped, and %s is not: the garbage collector would delete it at once", k.gvk.Kind, obj.GetName(), o)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(o.namespace)
	}
	if obj.GetNamespace() != o.namespace {
		return fmt.Errorf("%s is in another namespace than %s: the garbage collector would delete it at once", k.describe(obj), o)
	}
	return nil
}

// isNamespaced is not known of a kind that is not served, or by a fake client that knows no scopes: the request will tell.
func (a *applier) isNamespaced(o *owner, k *kind, obj client.Object) (namespaced, known bool, err error) {
	scope, ok := a.scopes.Load(k)
	if !ok {
		is, err := o.client.IsObjectNamespaced(obj)
		switch {
		case meta.IsNoMatchError(err):
			return false, false, nil
		case err != nil:
			return false, false, fmt.Errorf("scope of %s: %w", k.gvk.Kind, err)
		}
		scope, _ = a.scopes.LoadOrStore(k, is)
	}
	namespaced, _ = scope.(bool)
	return namespaced, true, nil
}
