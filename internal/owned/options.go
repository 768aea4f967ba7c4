package owned

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Options are the options of a child. The zero value has none.
type Options struct {
	FormerManagers []string
	Adopt          bool
	AdoptRetained  bool
	AdoptRestored  bool
	Recreate       bool
	CreateOnly     func(client.Object) // unsets the fields that are applied at creation only; nil for none

	KeepWhileMissing func(live, desired client.Object) // nil if the child is not built while an input is missing
	ReadyCondition   string                            // the condition that decides readiness; empty for kstatus

	IfServed         bool
	ServedConditions []string // the condition types that show whether the kind is served

	Anywhere      bool                     // its objects may be in any namespace, or cluster-scoped
	Retain        func(client.Object) bool // reports whether the child stays when the owner is deleted; nil for never
	Generate      []GeneratedKey
	RunOnce       bool
	ExpandVolumes bool
}

// GeneratedKey is a key of a Secret that is filled with random values.
type GeneratedKey struct {
	Name     string
	Length   int
	RotateOn func(owner client.Object) string // nil if the key is never rotated
	Trigger  string                           // the hash of what RotateOn returned
}

// SetAnnotation sets an annotation in memory.
func SetAnnotation(obj client.Object, key, value string) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
