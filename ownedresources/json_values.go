package ownedresources

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withJSONValues gives an unstructured object with the types that apimachinery expects in one,
// also where its author wrote an int or a []string: copying it would panic.
func withJSONValues(obj client.Object) (client.Object, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || holdsJSONValues(u.Object) {
		return obj, nil
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return obj, fmt.Errorf("it has no JSON form: %w", err)
	}
	converted := &unstructured.Unstructured{}
	return converted, json.Unmarshal(data, &converted.Object)
}

func holdsJSONValues(v any) bool {
	switch v := v.(type) {
	case nil, string, bool, int64, float64:
		return true
	case map[string]any:
		for _, e := range v {
			if !holdsJSONValues(e) {
				return false
			}
		}
		return true
	case []any:
		for _, e := range v {
			if !holdsJSONValues(e) {
				return false
			}
		}
		return true
	}
	return false
}
