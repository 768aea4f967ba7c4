// Package fieldmanager names who writes a field.
package fieldmanager

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxLength is the API's limit for the name of a field manager.
const maxLength = 128

// For names the operator of a kind: the same in every process, however its binary is called
// (client-go's default is the binary's name), and another one for every operator.
func For(kind schema.GroupVersionKind) client.FieldOwner {
	name := strings.ToLower(kind.Kind)
	if kind.Group != "" {
		name += "." + kind.Group
	}
	return client.FieldOwner(name[:min(len(name), maxLength)])
}
