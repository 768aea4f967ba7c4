package hashedvalues

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// values are the values in one field of an object, such as data, by their keys.
type values interface {
	// size returns the number of bytes of the keys and values, and the number of bytes if the long values are replaced by hashes.
	size() (whole, small int)
	// hash replaces each long value by a hash.
	hash()
	// drop removes all keys and values.
	drop()
	// restore replaces the hashes of the desired values by the values. If the hash of another value remains, it returns false. It does not
	// change the map itself, but gives the object a new one.
	restore(desired values) bool
}

// valuesOf returns the fields of a Secret or a ConfigMap that hold values. For any other object it returns none.
func valuesOf(obj client.Object) []values {
	switch obj := obj.(type) {
	case *corev1.ConfigMap:
		return []values{&field[string]{texts, obj.Data, func(m map[string]string) { obj.Data = m }}, bytesOf(&obj.BinaryData)}
	case *corev1.Secret:
		return []values{bytesOf(&obj.Data)}
	case *unstructured.Unstructured:
		switch {
		case obj.GetAPIVersion() != "v1":
		case obj.GetKind() == "ConfigMap":
			return []values{untyped(obj, "data", untypedTexts), untyped(obj, "binaryData", untypedBytes)}
		case obj.GetKind() == "Secret":
			return []values{untyped(obj, "data", untypedBytes)}
		}
	}
	return nil
}

func bytesOf(m *map[string][]byte) values {
	return &field[[]byte]{binary, *m, func(changed map[string][]byte) { *m = changed }}
}

func untyped(obj *unstructured.Unstructured, name string, f form[any]) values {
	m, _ := obj.Object[name].(map[string]any)
	return &field[any]{f, m, func(changed map[string]any) {
		if changed == nil {
			delete(obj.Object, name)
			return
		}
		obj.Object[name] = changed
	}}
}

// form says how the values of a field are stored: as strings or bytes, typed or untyped.
type form[V any] struct {
	length func(V) int
	equal  func(a, b V) bool
	hash   func(V) V
	// hashed is the length of a hash. Each value of this length or longer is replaced by a hash. So in an object with hashes, a value of this
	// length is always a hash, and nobody can write a value that is taken for the hash of another one.
	hashed int
}

// hashLength is the length of what hashOf returns.
const hashLength = len("sha256:") + 2*sha256.Size

// hashOf returns a hash as text.
func hashOf(value []byte) string {
	sum := sha256.Sum256(value)
	return "sha256:" + hex.EncodeToString(sum[:])
}

var (
	texts = form[string]{
		length: func(v string) int { return len(v) },
		equal:  func(a, b string) bool { return a == b },
		hash:   func(v string) string { return hashOf([]byte(v)) },
		hashed: hashLength,
	}
	binary = form[[]byte]{
		length: func(v []byte) int { return len(v) },
		equal:  bytes.Equal,
		hash:   func(v []byte) []byte { return []byte(hashOf(v)) },
		hashed: hashLength,
	}
	untypedTexts = form[any]{length: lengthOfText, equal: equalTexts, hash: func(v any) any { return hashOf([]byte(v.(string))) }, hashed: hashLength}
	// The untypedBytes are base64 strings, and so are their hashes.
	untypedBytes = form[any]{length: lengthOfText, equal: equalTexts, hash: func(v any) any {
		return base64.StdEncoding.EncodeToString([]byte(hashOf([]byte(v.(string)))))
	}, hashed: base64.StdEncoding.EncodedLen(hashLength)}
)

// lengthOfText returns the length of a string. For any other value, which the API server does not accept, it returns 0.
func lengthOfText(v any) int {
	text, _ := v.(string)
	return len(text)
}

func equalTexts(a, b any) bool {
	text, ok := a.(string)
	other, both := b.(string)
	return ok && both && text == other
}

// field has the values of one field of an object.
type field[V any] struct {
	form[V]
	all   map[string]V
	store func(map[string]V)
}

func (f *field[V]) size() (whole, small int) {
	for key, value := range f.all {
		length := f.length(value)
		whole, small = whole+len(key)+length, small+len(key)+min(length, f.hashed)
	}
	return whole, small
}

func (f *field[V]) hash() {
	for key, value := range f.all {
		if f.length(value) >= f.hashed {
			f.all[key] = f.form.hash(value)
		}
	}
}

func (f *field[V]) drop() {
	f.all = nil
	f.store(nil)
}

func (f *field[V]) restore(desired values) bool {
	wanted := desired.(*field[V])
	restored := maps.Clone(f.all)
	for key, value := range f.all {
		if f.length(value) != f.hashed {
			continue
		}
		want, ok := wanted.all[key]
		if !ok || f.length(want) < f.hashed || !f.equal(f.form.hash(want), value) {
			return false
		}
		restored[key] = want
	}
	f.store(restored)
	return true
}
