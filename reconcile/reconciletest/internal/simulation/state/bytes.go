package state

import (
	"encoding/base64"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fieldsOfBytes are the fields of built-in kinds whose values are bytes. JSON has them in base64.
var fieldsOfBytes = map[string]string{"Secret": "data", "ConfigMap": "binaryData"}

// bytesOf returns the field of an object whose values are bytes. It returns nil if the object's kind has none.
func bytesOf(object map[string]any) map[string]any {
	kind, _ := object["kind"].(string)
	values, _ := object[fieldsOfBytes[kind]].(map[string]any)
	if object["apiVersion"] != "v1" {
		return nil
	}
	return values
}

// decodeBytes replaces values in base64 by their texts, so that times, UIDs and generated names in them are replaced as elsewhere.
// Values that are not text stay as they are.
func decodeBytes(u *unstructured.Unstructured) {
	for key, value := range bytesOf(u.Object) {
		encoded, _ := value.(string)
		if text, err := base64.StdEncoding.DecodeString(encoded); err == nil && utf8.Valid(text) {
			bytesOf(u.Object)[key] = textOfBytes + string(text)
		}
	}
}

// encodeBytes undoes decodeBytes, so that a report does not show the values of a Secret as text.
func encodeBytes(object map[string]any) {
	for key, value := range bytesOf(object) {
		if text, ok := value.(string); ok && len(text) >= len(textOfBytes) && text[:len(textOfBytes)] == textOfBytes {
			bytesOf(object)[key] = base64.StdEncoding.EncodeToString([]byte(text[len(textOfBytes):]))
		}
	}
}

// textOfBytes is the beginning of the values that decodeBytes has decoded. No value in base64 begins with it.
const textOfBytes = "text:"
