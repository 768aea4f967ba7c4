package owned

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
)

// BuiltFrom is the part of an owner that the functions which build children see. Each write of a child also stores a hash of it in an
// annotation. A changed hash alone causes no write. If a function returns another child although the hash is the same, the code of the
// operator has changed.
type BuiltFrom struct {
	Owner   client.Object // the owner that these functions get
	content []byte        // the encoded content of the owner, nil until it is needed
	err     error
}

// Hash returns the hash of the owner, and of the versions in which the inputs of a child have read objects. It is empty if the owner has no
// JSON form.
func (b *BuiltFrom) Hash(reads []ReadVersion) string {
	if b.content == nil && b.err == nil {
		b.content, b.err = encodeOwner(b.Owner)
	}
	if b.err != nil {
		return ""
	}
	text := slices.Clip(b.content)
	for _, read := range slices.SortedFunc(slices.Values(reads), compareReads) {
		text = fmt.Appendf(text, "\n%s %s %s", read.Kind, read.Name, read.Version)
	}
	hash := SumOf(text)
	return "v1:" + string(hash[:16])
}

func compareReads(a, b ReadVersion) int {
	return strings.Compare(a.Kind.String()+" "+a.Name.String(), b.Kind.String()+" "+b.Name.String())
}

// encodeOwner encodes an owner without its status. From the metadata it keeps the name, the labels and the annotations that this library
// does not set.
func encodeOwner(owner client.Object) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(owner)
	if err != nil {
		return nil, err
	}
	content = maps.Clone(content)
	delete(content, "status")
	annotations := maps.Clone(owner.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return domain == "opblocks.dev" || strings.HasSuffix(domain, ".opblocks.dev")
	})
	content["metadata"] = map[string]any{"name": owner.GetName(), "labels": owner.GetLabels(), "annotations": annotations}
	return compare.AppendValue(nil, content)
}

// ReadVersion is the version in which an object was read. The version is empty if the object did not exist.
type ReadVersion struct {
	Kind    schema.GroupVersionKind
	Name    types.NamespacedName
	Version string
}
