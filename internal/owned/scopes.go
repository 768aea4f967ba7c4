package owned

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// Scopes remembers which kinds are namespaced. It is safe for concurrent use.
type Scopes struct {
	known sync.Map // *Kind → bool
}

// Validate returns what is wrong with the objects, before any of them is read or written. It sets the owner's namespace on each object
// without one.
func (s *Scopes) Validate(o *Owner, all []Declared) error {
	for i, d := range all {
		if err := s.ValidateOne(o, d.Kind, d.Object); err != nil {
			return fmt.Errorf("desired object %d: %w", i+1, err)
		}
		for _, other := range all[:i] {
			if other.IsNamed(d.Kind.GVK, d.Object) {
				return fmt.Errorf("desired object %d: %s is desired twice: give each object once", i+1, d.Kind.Describe(d.Object))
			}
		}
	}
	return nil
}

// ValidateOne does the same as Validate for one object.
func (s *Scopes) ValidateOne(o *Owner, k *Kind, obj client.Object) error {
	if err := s.validatePlace(o, k, obj); err != nil {
		return err
	}
	return o.CheckIsAnother(k, obj)
}

// CheckIsAnother returns an error if the object is the owner itself: the operator would overwrite its own owner, and delete it once the
// object is not desired any more.
func (o *Owner) CheckIsAnother(k *Kind, obj client.Object) error {
	if record.NameOf(k.GVK.GroupKind(), obj) != o.ObjectName() {
		return nil
	}
	return fmt.Errorf("%s is its own owner: give the child another name than its owner's", k.Describe(obj))
}

// validatePlace returns what is wrong with the name and the namespace of an object. It sets the owner's namespace on an object without one.
func (s *Scopes) validatePlace(o *Owner, k *Kind, obj client.Object) error {
	if obj.GetName() == "" {
		return ErrNoName(k)
	}
	if o.Namespace == "" { // a cluster-scoped owner may own objects of any scope and namespace
		switch namespaced, known, err := s.IsNamespaced(o, k, obj); {
		case err != nil:
			return err
		case known && !namespaced:
			obj.SetNamespace("")
		case known && obj.GetNamespace() == "":
			return fmt.Errorf("%s has no namespace, and its owner %s is cluster-scoped: set a namespace", k.Describe(obj), o)
		}
		return nil
	}
	switch namespaced, known, err := s.IsNamespaced(o, k, obj); {
	case err != nil:
		return err
	case known && !namespaced:
		return fmt.Errorf("%s %s is cluster-scoped and its owner %s is not: the garbage collector would delete it at once; a child of Ensure may be cluster-scoped with the option Anywhere", k.GVK.Kind, obj.GetName(), o)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(o.Namespace)
	}
	if obj.GetNamespace() != o.Namespace {
		return fmt.Errorf("%s is in another namespace than its owner %s: the garbage collector would delete it at once; a child of Ensure may be there with the option Anywhere", k.Describe(obj), o)
	}
	return nil
}

// ErrNoName returns the error for an object without a name.
func ErrNoName(k *Kind) error {
	return fmt.Errorf("a %s has no name: set metadata.name in the function that builds it, such as ownedresources.ObjectMeta(owner) does", k.GVK.Kind)
}

// IsNamespaced reports whether a kind is namespaced. If the kind is not served, or if a fake client has no scopes, known is false: only the
// request that writes the object will show the scope.
func (s *Scopes) IsNamespaced(o *Owner, k *Kind, obj client.Object) (namespaced, known bool, err error) {
	scope, ok := s.known.Load(k)
	if !ok {
		is, err := o.Client.IsObjectNamespaced(obj)
		switch {
		case meta.IsNoMatchError(err):
			return false, false, nil
		case err != nil:
			return false, false, fmt.Errorf("scope of %s: %w", k.GVK.Kind, err)
		}
		scope, _ = s.known.LoadOrStore(k, is)
	}
	namespaced, _ = scope.(bool)
	return namespaced, true, nil
}
