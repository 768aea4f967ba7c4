// Package preview holds what a reconcile would do to children, and prints it. It sends nothing and decides nothing.
//
// A [Change] is what would be done to one child, an [Object] is what would be done for one owner, and a [Report] groups the
// changes of all owners.
package preview

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Action is what would be done to a child.
type Action string

// The actions.
const (
	None     Action = "none"     // it is as desired
	Create   Action = "create"   // it is absent
	Apply    Action = "apply"    // it differs
	Recreate Action = "recreate" // a field that cannot change differs, so it is deleted and created
	Replace  Action = "replace"  // a StatefulSet is deleted without its pods, and created with larger volumes
	Delete   Action = "delete"   // it is not desired any more
	Retain   Action = "retain"   // it is not desired any more and stays: its owner reference is taken off
	Compare  Action = "compare"  // it is outside of the cluster: only the operator compares it, and changes it if it differs
)

// Check returns an error if a is not one of the actions. A step of a user's own may have misspelt it.
func (a Action) Check() error {
	switch a {
	case None, Create, Apply, Recreate, Replace, Delete, Retain, Compare:
		return nil
	}
	return fmt.Errorf("the action %q of a change is not known: use %s, %s, %s, %s, %s, %s, %s or %s",
		string(a), None, Create, Apply, Recreate, Replace, Delete, Retain, Compare)
}

// Difference is one field that an apply would change.
type Difference struct {
	// Path of the field, such as spec.template.spec.containers[0].image.
	Path string
	// Have is the live value and Want the value after the apply, as JSON. Each is empty if the value is absent. Values
	// of Secrets and of environment variables are replaced by "(hidden)".
	Have, Want string
}

// String returns the difference in one line: the path, and what is added (+), removed (-) or changed (→).
func (d Difference) String() string {
	switch {
	case d.Have == "":
		return d.Path + ": + " + d.Want
	case d.Want == "":
		return d.Path + ": - " + d.Have
	}
	return d.Path + ": " + d.Have + " → " + d.Want
}

// Change is what would be done to one child.
type Change struct {
	// Kind is the kind of the child.
	Kind schema.GroupKind
	// Name is the name of the child. It is empty if no object could be built.
	Name types.NamespacedName
	// Action is what would be done. It is empty if Err or Waits says why nothing is.
	Action Action
	// Differences are the fields that would change, in the order of their paths. The list is empty for an object that is created
	// or deleted.
	Differences []Difference
	// Effects are what follows from the change, such as "its pods are replaced".
	Effects []string
	// LosesData is whether data is lost: a claim is deleted, or a namespace with all that is in it.
	LosesData bool
	// After says until what the change waits, such as "Job default/migrate is ready". It is empty if it is made at once.
	After string
	// Note says in what the change is not exact, such as that the API server was not asked. It is empty if it is exact.
	Note string
	// Waits is what the child waits for. Nothing is done before.
	Waits string
	// Err is why nothing would be done: the reconcile would fail, or what it would do cannot be known.
	Err error
}

// Changes reports whether something would be done.
func (c *Change) Changes() bool {
	return c.Action != None && c.Action != Compare && c.Err == nil && c.Waits == ""
}

// Object is what would be done for one owner.
type Object struct {
	Kind schema.GroupVersionKind
	Name types.NamespacedName
	// Changes has an entry for each child, also for one that is as desired.
	Changes []Change
	// Skipped is why nothing would be done for the object, such as "it is paused". It is empty if something would.
	Skipped string
	// Err is why what would be done for the object is not known.
	Err error
}

// NameOf returns a name without the slash of an empty namespace.
func NameOf(name types.NamespacedName) string { return strings.TrimPrefix(name.String(), "/") }

// child is the kind and the name of a child.
type child struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// goes reports whether the child is not desired any more by the set of the change.
func (c *Change) goes() bool { return c.Action == Delete || c.Action == Retain }

// desiredIn returns the children that a set desires.
func desiredIn(changes []Change) map[child]bool {
	desired := map[child]bool{}
	for i := range changes {
		if c := &changes[i]; !c.goes() {
			desired[child{c.Kind, c.Name}] = true
		}
	}
	return desired
}

// WithoutMoved drops the deletions of objects that another set of the same owner desires: an object that moves from one set to
// another is not deleted. changes has the changes of all sets of the owner in one controller.
func WithoutMoved(changes []Change) []Change {
	desired := desiredIn(changes)
	return slices.DeleteFunc(changes, func(c Change) bool { return c.goes() && desired[child{c.Kind, c.Name}] })
}

// NoteMoved notes which deletions depend on the order of controllers. changes has the changes of all controllers, each without what
// moves between its own sets.
func NoteMoved(changes []Change) {
	desired := desiredIn(changes)
	for i := range changes {
		if c := &changes[i]; c.goes() && desired[child{c.Kind, c.Name}] {
			c.Note = "another controller desires it: if that one is first, it is changed, and nothing else happens to it"
		}
	}
}
