package feature

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/owned"
)

// MistakeOf returns an error if options of a child are not valid, or nil. kind is the kind of the child's objects. hasInput is true if the
// child has an input.
func MistakeOf(o *owned.Options, kind schema.GroupKind, hasInput bool) error {
	if o.KeepWhileMissing != nil && !hasInput {
		return errors.New("it has KeepWhileMissing, and no input that could be missing: take it away, or build it with BuildFrom")
	}
	if o.Retain != nil && o.Recreate {
		return errors.New("it has the options Retain and Recreate: Recreate would delete what Retain keeps; take one of them away")
	}
	if (o.RunOnce || o.ExpandVolumes) && (o.Anywhere || o.Retain != nil) {
		return errors.New("it has the option RunOnce or ExpandVolumes, and Anywhere or Retain: they release and recreate the child by its owner reference; take one of them away")
	}
	return cmp.Or(generateMistake(o, kind), runOnceMistake(o, kind), expandVolumesMistake(o, kind))
}
