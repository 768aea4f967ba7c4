package ownedresources

import (
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChildOption changes how one child is treated.
type ChildOption func(*childOptions)

type childOptions struct {
	formerManagers []string
	adopt          bool
	recreate       bool
	unset          func(client.Object) // what is set at creation only
	unsets         reflect.Type        // what unset is for; nil without it
}

// FormerManagers takes over the fields of children that an older operator wrote by Create
// and Update. Its field manager was named after its binary: "manager" in kubebuilder's and
// operator-sdk's images, "main" or "__debug_bin" when it was run from sources. Fields that
// it set and that are no longer wanted go; without this option they would stay for ever.
func FormerManagers(names ...string) ChildOption {
	return func(o *childOptions) { o.formerManagers = append(o.formerManagers, names...) }
}

// Adopt takes over an object of the child's name that nobody controls. Without it, such an
// object is left alone. One that somebody else controls is left alone in any case.
func Adopt() ChildOption {
	return func(o *childOptions) { o.adopt = true }
}

// Recreate deletes and creates the child when the API server refuses a change of it, which it
// does for immutable fields. It is asked first, by a dry run, whether it would accept the new
// object. That happens once per change; what the child held goes with it.
func Recreate() ChildOption {
	return func(o *childOptions) { o.recreate = true }
}

// CreateOnly sets some fields when the child is created, and leaves them alone afterwards. The
// function unsets them in what is wanted, so that it says nothing of them. They may be anywhere
// but inside a list. P is the child's type, or an interface that it has.
func CreateOnly[P client.Object](unset func(P)) ChildOption {
	return func(o *childOptions) {
		o.unset = func(obj client.Object) { unset(obj.(P)) }
		o.unsets = reflect.TypeFor[P]()
	}
}
