package set

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/record"
)

// written is a live object that a set wrote for an owner.
type written struct {
	kind   *owned.Kind
	object client.Object
	order  int // the rank in the annotation opblocks.dev/order
}

func describeAll(all []written) []string {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = w.kind.Describe(w.object)
	}
	return names
}

// enumerate returns the first three names, and the number of the others.
func enumerate(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func containsName(all []written, name record.Name) bool {
	for _, w := range all {
		if w.kind.GVK.GroupKind() == name.Kind && client.ObjectKeyFromObject(w.object) == name.NamespacedName {
			return true
		}
	}
	return false
}
