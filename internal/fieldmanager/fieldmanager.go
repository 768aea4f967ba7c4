// Package fieldmanager names who writes a field.
package fieldmanager

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// longest is the API's limit for the name of a field manager.
	longest = 128
	// longestReporter is that for the controller that an event names: a label's name.
	longestReporter = 63

	released = "-released"
)

// For names the operator of a kind: the same in every process, however its binary is called
// (client-go's default is the binary's name), and another one for every operator.
func For(kind schema.GroupVersionKind) client.FieldOwner {
	name := nameOf(kind)
	return client.FieldOwner(name[:min(len(name), longest-len(released))])
}

// Released names who holds the fields that an operator has let go of.
func Released(by client.FieldOwner) client.FieldOwner { return by + released }

// Reporter names the operator of a kind in events.
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
