// Package forecast holds what a reconcile would do to children, and prints it. It sends nothing and decides nothing.
//
// An [Object] is what would be done for one owner, and a [Report] groups the
// changes of all owners.
package forecast

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/reconcile/preview"
)

// The actions of a [preview.Change].
const (
	None     = "none"     // it is as desired
	Create   = "create"   // it is absent
	Apply    = "apply"    // it differs
	Recreate = "recreate" // a field that cannot change differs, so it is deleted and created
	Replace  = "replace"  // a StatefulSet is deleted without its pods, and created with larger volumes
	Delete   = "delete"   // it is not desired any more
	Retain   = "retain"   // it is not desired any more and stays: its owner reference is taken off
	Compare  = "compare"  // it is outside of the cluster: only the operator compares it, and changes it if it differs
)

// Check returns an error for an action that does not exist, such as one that a user's own step misspells.
func Check(action string) error {
	switch action {
	case None, Create, Apply, Recreate, Replace, Delete, Retain, Compare:
		return nil
	}
	return fmt.Errorf("the action %q of a change is not known: use %s, %s, %s, %s, %s, %s, %s or %s",
		action, None, Create, Apply, Recreate, Replace, Delete, Retain, Compare)
}

// Changes reports whether something would be done.
func Changes(c *preview.Change) bool {
	return c.Action != None && c.Action != Compare && c.Err == nil && c.Waits == ""
}

// Object is what would be done for one owner.
type Object struct {
	Kind schema.GroupVersionKind
	Name types.NamespacedName
	// Changes has an entry for each child, also for one that is as desired.
	Changes []preview.Change
	// Skipped is why nothing would be done for the object, such as "it is paused". It is empty if something would.
	Skipped string
	// Err is the reason why it is not known what would be done for the object.
	Err error
}

// NameOf returns a name without the slash of an empty namespace.
func NameOf(name types.NamespacedName) string { return strings.TrimPrefix(name.String(), "/") }

// child is the kind and the name of a child.
type child struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// goes reports whether the set no longer desires the child.
func goes(c *preview.Change) bool { return c.Action == Delete || c.Action == Retain }

// desiredIn returns the children that a set desires.
func desiredIn(changes []preview.Change) map[child]bool {
	desired := map[child]bool{}
	for i := range changes {
		if c := &changes[i]; !goes(c) {
			desired[child{c.Kind, c.Name}] = true
		}
	}
	return desired
}

// WithoutMoved drops the deletions of objects that another set of the same owner desires: an object that moves from one set to
// another is not deleted. changes has the changes of all sets of the owner in one controller.
func WithoutMoved(changes []preview.Change) []preview.Change {
	desired := desiredIn(changes)
	return slices.DeleteFunc(changes, func(c preview.Change) bool { return goes(&c) && desired[child{c.Kind, c.Name}] })
}

// NoteMoved notes which deletions depend on the order of controllers. changes has the changes of all controllers, each without what
// moves between its own sets.
func NoteMoved(changes []preview.Change) {
	desired := desiredIn(changes)
	for i := range changes {
		if c := &changes[i]; goes(c) && desired[child{c.Kind, c.Name}] {
			c.Note = "another controller desires it: if that one is first, it is changed, and nothing else happens to it"
		}
	}
}
