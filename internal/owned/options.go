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
	CreateOnly     func(client.Object) // unsets the fields that are sent only when the object is created; nil for none

	KeepWhileMissing func(live, desired client.Object) // nil if the child is not built while an input is missing
	ReadyCondition   string                            // the type of the condition that decides readiness; empty if the rules of kstatus decide

	IfServed         bool
	ServedConditions []string // the types of the conditions that show whether the API server serves the child's kind

	Anywhere      bool                     // its objects may be in any namespace, or cluster-scoped
	Retain        func(client.Object) bool // reports whether the child stays when the owner is deleted; nil if it never stays
	Generate      []GeneratedKey
	RunOnce       bool
	ExpandVolumes bool
}

// GeneratedKey is a key of a Secret that is filled with random values.
type GeneratedKey struct {
	Name     string
	Length   int
	RotateOn func(owner client.Object) string // nil if the key is never rotated
	Trigger  string                           // the hash of the text that RotateOn returned
}

// SetAnnotation sets an annotation of an object in memory. It sends no request.
func SetAnnotation(obj client.Object, key, value string) {
	annotations := maps.Clone(obj.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}
