// Package setfinalizer has the names of the finalizers of sets of children.
package setfinalizer

import (
	"cmp"
	"strings"
)

const (
	prefix  = "children.opblocks.dev/"
	unnamed = "set"
)

// For returns the finalizer of a set of this name, which may be empty.
func For(set string) string { return prefix + cmp.Or(set, unnamed) }

// SetOf returns the name of the set that has a finalizer. It returns false for the finalizers of others.
func SetOf(finalizer string) (set string, ok bool) { return strings.CutPrefix(finalizer, prefix) }
