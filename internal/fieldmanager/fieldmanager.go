// Package fieldmanager names the field managers and the event reporters of operators.
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

// For returns the field manager of the operator of a kind. It is the same in every process. client-go's default
// would be the name of the binary. Operators of different kinds have different ones.
func For(kind schema.GroupVersionKind) client.FieldOwner {
	name := nameOf(kind)
	return client.FieldOwner(name[:min(len(name), longest-len(released))])
}

// Released returns the field manager that holds the fields which an operator has released.
func Released(by client.FieldOwner) client.FieldOwner { return by + released }

// Reporter returns the reporting controller in the events of the operator of a kind.
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
