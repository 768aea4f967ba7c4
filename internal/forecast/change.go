// Package forecast holds what a reconcile would do to children, and prints it as a plan. It sends no request and decides nothing.
//
// An [Object] is what would be done for one owner. A [Report] groups the changes of all owners.
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
	None     = "none"     // the child is as desired
	Create   = "create"   // the child does not exist
	Apply    = "apply"    // the child differs
	Recreate = "recreate" // a field that cannot change differs, so the child is deleted and created again
	Replace  = "replace"  // a StatefulSet is deleted without its pods, and created again with larger volumes
	Delete   = "delete"   // the child is not desired any more
	Retain   = "retain"   // the child is not desired any more and stays: its owner reference is removed
	Compare  = "compare"  // an object outside of the cluster: only the running operator compares it, and changes it if it differs
)

// Check returns an error for an action that does not exist, for example if a user's own step misspells it.
func Check(action string) error {
	switch action {
	case None, Create, Apply, Recreate, Replace, Delete, Retain, Compare:
		return nil
	}
	return fmt.Errorf("the action %q of a change is not known: use %s, %s, %s, %s, %s, %s, %s or %s",
		action, None, Create, Apply, Recreate, Replace, Delete, Retain, Compare)
}

// Changes reports whether a reconcile would do something.
func Changes(c *preview.Change) bool {
	return c.Action != None && c.Action != Compare && c.Err == nil && c.Waits == ""
}

// Object is what would be done for one owner.
type Object struct {
	Kind schema.GroupVersionKind
	Name types.NamespacedName
	// Changes has an entry for each child, including children that are as desired.
	Changes []preview.Change
	// Skipped is the reason if nothing would be done for the owner, such as "it is paused". Otherwise it is empty.
	Skipped string
	// Err is the reason if it is not known what would be done for the owner.
	Err error
}

// NameOf returns the name, after the namespace and a slash if it has a namespace.
func NameOf(name types.NamespacedName) string { return strings.TrimPrefix(name.String(), "/") }

// child is the kind and the name of a child.
type child struct {
	kind schema.GroupKind
	name types.NamespacedName
}

// goes reports whether the change is that a set does not desire the child any more.
func goes(c *preview.Change) bool { return c.Action == Delete || c.Action == Retain }

// desiredIn returns the children that a set in these changes desires.
func desiredIn(changes []preview.Change) map[child]bool {
	desired := map[child]bool{}
	for i := range changes {
		if c := &changes[i]; !goes(c) {
			desired[child{c.Kind, c.Name}] = true
		}
	}
	return desired
}

// WithoutMoved removes the deletions of children that another set of the same owner desires: a child that moves from one set to another is
// not deleted. changes has the changes of all sets of the owner in one controller.
func WithoutMoved(changes []preview.Change) []preview.Change {
	desired := desiredIn(changes)
	return slices.DeleteFunc(changes, func(c preview.Change) bool { return goes(&c) && desired[child{c.Kind, c.Name}] })
}

// NoteMoved adds a note to the deletions of children that another controller desires, because their outcome depends on which controller
// runs first. changes has the changes of all controllers, after WithoutMoved was called for each of them.
func NoteMoved(changes []preview.Change) {
	desired := desiredIn(changes)
	for i := range changes {
		if c := &changes[i]; goes(c) && desired[child{c.Kind, c.Name}] {
			c.Note = "another controller desires it: if that one is first, it is changed, and nothing else happens to it"
		}
	}
}
