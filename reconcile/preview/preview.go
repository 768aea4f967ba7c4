// Package preview describes what a reconcile would do. If a step of your own has a method Preview, it returns [Change] values, and
// package upgrade shows them in its plan:
//
//	func (s *step) Preview(ctx context.Context, c client.Client, obj *v1.Shop) ([]preview.Change, error)
package preview

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Change is what a reconcile would do to one child.
type Change struct {
	// Kind is the kind of the child.
	Kind schema.GroupKind
	// Name is the name of the child. It is empty if no object could be built.
	Name types.NamespacedName
	// Action is what the reconcile would do:
	//
	//   - "none", if the child is as desired;
	//   - "create", if it does not exist, and "apply", if it differs;
	//   - "recreate", if a field differs that cannot change;
	//   - "replace", for a StatefulSet that is created with larger volumes;
	//   - "delete" or "retain", if it is not desired any more;
	//   - "compare", for a thing outside of the cluster, if it is not known whether it differs.
	//
	// It is empty if Err or Waits says why nothing is done.
	Action string
	// Differences are the fields that would change, in the order of their paths. The list is empty for an object that is created
	// or deleted.
	Differences []Difference
	// Effects are the consequences of the change, such as "its pods are replaced".
	Effects []string
	// LosesData reports whether data is lost: a PersistentVolumeClaim is deleted, or a namespace with everything in
	// it.
	LosesData bool
	// After says for what the change waits, such as "Job default/migrate is ready". It is empty if the change is made at once.
	After string
	// Note says why the change is not exact, for example because the API server was not asked. It is empty if the change is
	// exact.
	Note string
	// Waits says for what the child waits. Until then nothing is done.
	Waits string
	// Err says why nothing would be done: the reconcile would fail, or it cannot be known what it would do.
	Err error
}

// Difference is one field that would change.
type Difference struct {
	// Path is the path of the field, such as spec.template.spec.containers[0].image.
	Path string
	// Have is the live value and Want is the new value, as JSON. A value that does not exist is empty. Values of
	// Secrets and of environment variables are replaced by "(hidden)".
	Have, Want string
}

// String returns the difference in one line: the path, and the value that is added (+) or removed (-), or both values
// (→).
func (d Difference) String() string {
	switch {
	case d.Have == "":
		return d.Path + ": + " + d.Want
	case d.Want == "":
		return d.Path + ": - " + d.Have
	}
	return d.Path + ": " + d.Have + " → " + d.Want
}
