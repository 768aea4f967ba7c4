package set

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// ChildKinds are the kinds of a set's children in a scheme, one for each child, in the order of the children.
type ChildKinds struct {
	children []*Child
	scheme   *runtime.Scheme
	kinds    []*owned.Kind
	Builders []string // by child: the value of the annotation opblocks.dev/builder; empty for none
}

// sampleOf returns the empty object of the first child of a kind, or nil if the set has no such child.
func (ks *ChildKinds) sampleOf(gvk schema.GroupVersionKind) client.Object {
	for i, k := range ks.kinds {
		if k.GVK == gvk {
			return ks.children[i].Sample
		}
	}
	return nil
}

// isAnywhere reports whether objects of a kind may be outside of the owner's namespace.
func (ks *ChildKinds) isAnywhere(gvk schema.GroupVersionKind) bool {
	return ks.hasOption(gvk, func(o *owned.Options) bool { return o.Anywhere })
}

// isMarked reports whether objects of a kind may have annotations that name the owner in place of an owner reference.
func (ks *ChildKinds) isMarked(gvk schema.GroupVersionKind) bool {
	return ks.hasOption(gvk, func(o *owned.Options) bool { return o.Anywhere || o.Retain != nil })
}

// hasOption reports whether the function returns true for the options of any child of this kind. Call it after the set has looked up its
// kinds.
func (ks *ChildKinds) hasOption(gvk schema.GroupVersionKind, is func(*owned.Options) bool) bool {
	for i, k := range ks.kinds {
		if k.GVK.GroupKind() == gvk.GroupKind() && is(&ks.children[i].Options) {
			return true
		}
	}
	return false
}

// uncompiled returns the kind of a child without its schema. Children of the same kind share one result.
func (ks *ChildKinds) uncompiled(sample client.Object, scheme *runtime.Scheme) (*owned.Kind, error) {
	gvk, err := apiutil.GVKForObject(sample, scheme)
	if err != nil {
		return nil, fmt.Errorf("%w: add its types to the manager's scheme", err)
	}
	for _, k := range ks.kinds {
		if k.GVK == gvk && k.Comparer == nil {
			return k, nil
		}
	}
	return &owned.Kind{GVK: gvk, Type: reflect.TypeOf(sample).Elem()}, nil
}

// retainsAll reports whether all children of a kind have the option Retain, and all their functions return true for the owner.
func (ks *ChildKinds) retainsAll(k *owned.Kind, owner client.Object) bool {
	return ks.hasOption(k.GVK, func(o *owned.Options) bool { return o.Retain != nil }) &&
		!ks.hasOption(k.GVK, func(o *owned.Options) bool { return o.BindingFor(owner) != owned.ByRetention })
}

// retainsNone reports whether a kind has children with the option Retain, and all their functions return false for the owner. If the kind
// has no such child, retainsNone reports false: nobody knows whether a retained object is still needed, so it stays.
func (ks *ChildKinds) retainsNone(k *owned.Kind, owner client.Object) bool {
	return ks.hasOption(k.GVK, func(o *owned.Options) bool { return o.Retain != nil }) &&
		!ks.hasOption(k.GVK, func(o *owned.Options) bool { return o.BindingFor(owner) == owned.ByRetention })
}

// buildersOf returns a value of the annotation opblocks.dev/builder for each child that has the option Retain and shares its kind with
// other children of the set. The value has a hash of the names of the functions that build objects of this kind, and the position of the
// child among them. If a release adds, removes or reorders such children, the hash changes, and it is not known which child built a live
// object with the earlier hash. Only an exchange of two functions without names is not noticed.
func (ks *ChildKinds) buildersOf() []string {
	kinds := ks.kinds
	builders := make([]string, len(kinds))
	for i, child := range ks.children {
		if child.Options.Retain == nil {
			continue
		}
		var functions []string
		position := 0
		for j, k := range kinds {
			if k.GVK.GroupKind() != kinds[i].GVK.GroupKind() {
				continue
			}
			if functions = append(functions, ks.children[j].function); j == i {
				position = len(functions)
			}
		}
		if len(functions) > 1 {
			builders[i] = record.BuilderOf(functions, position)
		}
	}
	return builders
}

// builderOf returns the child that built a live object, by the annotation opblocks.dev/builder. It returns nil if that is not known.
func (ks *ChildKinds) builderOf(w written) *Child {
	wrote := w.object.GetAnnotations()[record.Builder]
	for i, builder := range ks.Builders {
		if builder != "" && builder == wrote && ks.kinds[i].GVK.GroupKind() == w.kind.GVK.GroupKind() {
			return ks.children[i]
		}
	}
	return nil
}

// keeps reports whether a live object that is not desired any more stays. If it is known which child built the object, the function that
// this child gave to Retain decides. Otherwise the functions of all children of its kind decide: an object that was already retained is
// deleted only if all of them return false. Any other object stays only if all children of its kind have such a function, and all functions
// return true.
func (ks *ChildKinds) keeps(o *owned.Owner, w written) bool {
	if child := ks.builderOf(w); child != nil {
		return child.Options.BindingFor(o.Seen) == owned.ByRetention
	}
	if m, marked := record.MarkOf(w.object, w.kind.GVK.GroupKind()); marked && m.Retained {
		return !ks.retainsNone(w.kind, o.Seen)
	}
	return ks.retainsAll(w.kind, o.Seen)
}

// watchedPlace returns the index of a child of the same kind as the child at place: the child that decides whether the kind is watched as
// typed or as unstructured objects. This is the first typed child of the kind. If there is none, it is the child at place, which is the
// first of its kind.
func watchedPlace(children []*Child, kinds []*owned.Kind, place int) int {
	for i, k := range kinds {
		if k.GVK == kinds[place].GVK && isUntyped(children[i].Sample) == 0 {
			return i
		}
	}
	return place
}

// firstOfKind returns the index of the first child of the same kind as child i.
func firstOfKind(kinds []*owned.Kind, i int) int {
	return slices.IndexFunc(kinds, func(k *owned.Kind) bool { return k.GVK == kinds[i].GVK })
}

func isUntyped(obj client.Object) int {
	if _, untyped := obj.(runtime.Unstructured); untyped {
		return 1
	}
	return 0
}
