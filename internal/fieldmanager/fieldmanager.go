// Package fieldmanager names the field managers of operators, and the reporting controllers in their events.
package fieldmanager

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// longest is the API's limit for the name of a field manager, in bytes.
	longest = 128
	// longestReporter is the limit for the reporting controller of an event, which must be a qualified name.
	longestReporter = 63

	released = "-released"
)

// For returns the field manager of the operator of a kind. It is the same in every process, and operators of different kinds have different
// ones. client-go's default would be the name of the binary.
func For(kind schema.GroupVersionKind) client.FieldOwner {
	name := nameOf(kind)
	return client.FieldOwner(name[:min(len(name), longest-len(released))])
}

// Released returns a second field manager of the operator. It owns fields that the operator does not apply any more, so that they stay.
func Released(by client.FieldOwner) client.FieldOwner { return by + released }

// Reporter returns the reporting controller that the operator of a kind writes into events.
func Reporter(kind schema.GroupVersionKind) string {
	name := nameOf(kind)
	return strings.TrimRight(name[:min(len(name), longestReporter)], "-.")
}

func nameOf(kind schema.GroupVersionKind) string {
	name := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		name += "." + kind.Group
	}
	return name
}
