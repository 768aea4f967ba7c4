package memoryserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// patchedFields applies a merge patch to a custom object. It returns the same result as [patchedJSON], but encodes
// nothing. That saves a quarter of the processor time of such a request. Most requests of an operator are such patches
// of a status, so it also saves a tenth of the processor time of an exploration of examples/memcached. It reports false
// if the content is null.
func patchedFields(k *kind.Kind, live client.Object, content []byte, strict bool) (obj client.Object, ok bool, err error) {
	var patch map[string]any
	if err := json.UnmarshalCaseSensitivePreserveInts(content, &patch); err != nil {
		return nil, true, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if patch == nil {
		return nil, false, nil
	}
	fields := runtime.DeepCopyJSON(live.(*unstructured.Unstructured).Object)
	mergeFields(fields, patch)
	obj, err = k.Strategy.FromMap(fields, strict)
	if err != nil {
		merged, _ := utiljson.Marshal(fields) // only for the message
		return nil, true, invalidPatch(merged, err)
	}
	return obj, true, nil
}

// mergeFields applies a merge patch (RFC 7386) to fields, and keeps parts of the patch in them. A null inside a list stays,
// and so does one inside a list that replaces a map, as in the library that the API server uses.
func mergeFields(fields, patch map[string]any) {
	for name, value := range patch {
		if value == nil {
			delete(fields, name)
			continue
		}
		before, isMap := fields[name].(map[string]any)
		changes, mergeable := value.(map[string]any)
		switch {
		case !isMap:
			removeNulls(value)
			fields[name] = value
		case !mergeable:
			fields[name] = value
		default:
			mergeFields(before, changes)
		}
	}
}

// removeNulls removes the null fields of all maps in a value.
func removeNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if inner == nil {
				delete(v, name)
				continue
			}
			removeNulls(inner)
		}
	case []any:
		for _, inner := range v {
			removeNulls(inner)
		}
	}
}
