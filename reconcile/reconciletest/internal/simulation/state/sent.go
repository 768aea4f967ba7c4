package state

import (
	"encoding/base64"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
)

// NotStored returns the path of each field that was sent and that the object lacks or has with another value. Further fields of the object
// make no difference, such as defaults. The status is not compared, nor is what ignore removes. ignore may be nil.
func NotStored(sent []byte, live client.Object, ignore func(*unstructured.Unstructured)) (paths []string) {
	wanted := &unstructured.Unstructured{}
	stored, err := contentOf(live)
	if err != nil || json.Unmarshal(sent, &wanted.Object) != nil {
		return nil
	}
	is := &unstructured.Unstructured{Object: stored}
	wanted.SetGroupVersionKind(is.GroupVersionKind())
	encodeStringData(wanted.Object)
	for _, u := range []*unstructured.Unstructured{wanted, is} {
		if ignore != nil {
			ignore(u)
		}
		delete(u.Object, "status")
		simplify(u)
	}
	for _, d := range lacking(wanted.Object, is.Object) {
		paths = append(paths, d.Path.String())
	}
	return paths
}

// Lacking returns a line for each field of want that the object lacks or has with another value. Further fields of the object make no
// difference. Items of a list that have names are compared by their names.
func Lacking(want, live client.Object) (lines []string, err error) {
	wanted, err := contentOf(want)
	if err != nil {
		return nil, err
	}
	is, err := contentOf(live)
	if err != nil {
		return nil, err
	}
	if _, untyped := want.(runtime.Unstructured); !untyped {
		dropZeros(reflect.ValueOf(want), wanted)
	}
	delete(wanted, "apiVersion") // a typed object often has no kind
	delete(wanted, "kind")
	for _, d := range lacking(wanted, is) {
		values := short(d.Before, d.After)
		if isAbsent(d.After) {
			lines = append(lines, fmt.Sprintf("%s is missing, and must be %s", d.Path, values[0]))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s is %s, and must be %s", d.Path, values[1], values[0]))
	}
	return lines, nil
}

// lacking returns the differences in the fields that are wanted.
func lacking(wanted, is map[string]any) (all []diff.Difference) {
	for _, d := range differences(nonempty(wanted), nonempty(is)) {
		if !isEmpty(d.Before) && !isSameQuantity(d.Before, d.After) {
			all = append(all, d)
		}
	}
	return all
}

// encodeStringData moves the field stringData of a Secret to data, as the API server does.
func encodeStringData(secret map[string]any) {
	texts, _, _ := unstructured.NestedStringMap(secret, "stringData")
	for key, text := range texts {
		_ = unstructured.SetNestedField(secret, base64.StdEncoding.EncodeToString([]byte(text)), "data", key)
	}
	delete(secret, "stringData")
}

// isSameQuantity reports whether two values are one quantity, such as 1000m and 1.
func isSameQuantity(a, b any) bool {
	one, isText := a.(string)
	other, isTextToo := b.(string)
	if !isText || !isTextToo {
		return false
	}
	first, err := resource.ParseQuantity(one)
	if err != nil {
		return false
	}
	second, err := resource.ParseQuantity(other)
	return err == nil && first.Cmp(second) == 0
}
