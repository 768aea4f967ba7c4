package ownedresources

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/compare"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/set"
)

// valuesHash returns the hash of the values that [SetHash] sets.
func valuesHash(values []any) (string, error) {
	if len(values) == 0 {
		return "", errors.New("hash of nothing: pass what the hash should change with")
	}
	if len(values) == 1 {
		return valueHash(versionInstead(values[0]))
	}
	all := make([]any, len(values))
	for i := range values {
		all[i] = versionInstead(values[i])
	}
	return valueHash(all)
}

// versionInstead returns the name, UID and resource version of a Secret, whose content must not be hashed, and of an object that has
// only metadata. It returns any other value unchanged.
func versionInstead(v any) any {
	switch obj := v.(type) {
	case *corev1.Secret:
		if obj == nil {
			return nil
		}
		return version(obj)
	case corev1.Secret:
		return version(&obj)
	case *metav1.PartialObjectMetadata:
		if obj == nil {
			return nil
		}
		return version(obj)
	case *unstructured.Unstructured:
		if obj != nil && isSecret(obj.Object) {
			return version(obj)
		}
	}
	return v
}

// valueHash returns the hash of a value.
func valueHash(v any) (string, error) {
	if containsSecret(reflect.ValueOf(v)) {
		return "", fmt.Errorf("hash of %T: it contains a Secret, whose content must not be hashed: pass the Secret as a value of its own", v)
	}
	encoded, err := compare.AppendValue(nil, v)
	if err != nil {
		return "", fmt.Errorf("hash of %T: %w", v, err)
	}
	s := owned.SumOf(encoded)
	return "v1:" + string(s[:]), nil
}

// versionsOf returns the name, UID and resource version of each object, sorted.
func versionsOf(objs ...metav1.Object) [][3]string {
	versions := make([][3]string, len(objs))
	for i, obj := range objs {
		versions[i] = version(obj)
	}
	slices.SortFunc(versions, func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	return versions
}

// version returns the name, UID and resource version of an object. They change when the object is changed, or deleted and created again.
// They reveal nothing of its content.
func version(obj metav1.Object) [3]string {
	return [3]string{obj.GetName(), string(obj.GetUID()), obj.GetResourceVersion()}
}

// SetHash sets the annotation key of obj to a hash of the values, in memory, and reports whether that changed the annotation. Set it on a
// pod template (&deployment.Spec.Template) to replace the pods when a value changes, such as an object that they use.
//
// The hash is "v1:" and 32 hexadecimal digits. Equal values have the same hash in every process, on every platform and with every
// version of Go. The order of a map's keys and of a struct's fields has no effect, nor has the notation of a quantity: 1000m and 1 have the
// same hash. The hash is computed from the JSON of a value, so fields that the JSON leaves out have no effect. The order of the values has
// an effect.
//
// The content of a Secret is never hashed, because more people can read an annotation than can read a Secret:
//
//   - A *corev1.Secret, also as *unstructured.Unstructured, is hashed by name, UID and resource version: the hash changes when the Secret
//     is changed, or deleted and created again. A *metav1.PartialObjectMetadata, which has no content, is hashed in the same way.
//   - A value that contains a Secret is an error: pass the Secret as a value of its own.
//   - A password that was copied out of a Secret cannot be recognised: pass the Secret in its place, or use
//     [ContentHash], whose hash has a key.
//
// A call without a value, and a value that cannot be encoded as JSON, are errors too. If there is an error, obj is unchanged.
func SetHash(obj metav1.Object, key string, values ...any) (changed bool, err error) {
	hash, err := valuesHash(values)
	if err != nil || obj.GetAnnotations()[key] == hash {
		return false, err
	}
	annotations := maps.Clone(obj.GetAnnotations()) // the map may be part of an object in the cache
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = hash
	obj.SetAnnotations(annotations)
	return true, nil
}

// minKeyLength is the smallest length of a key of [ContentHash], in bytes.
const minKeyLength = 16

// ContentHash returns an input whose value is a hash of the contents of all ConfigMaps and Secrets that reads declare: their names, their
// data and their binaryData, and nothing else. In an annotation of a pod template it replaces the pods when the content of one of the
// objects changes. When an object or the owner has changed, the object is read by one request. [VersionHash] needs no request, but its
// value changes more often. If nothing is declared for an owner, the value is empty. If objects are missing, the value is the hash of the
// others: see [Child.KeepAnnotationsWhileMissing].
//
// More people can read a pod than can read a Secret. With a plain hash they could check any number of guesses of a
// password. So the hash is computed with a secret (HMAC-SHA256, cut to 128 bits): the value of key in a Secret that
// another child of the set builds. The value has at least 16 bytes. Nobody needs to know it, so let it be generated:
//
//	key := ownedresources.Build(hashKey).Generate("key", 32)
//	configuration := ownedresources.ContentHash(key, "key", ownedresources.Reads(&corev1.Secret{}, secrets))
//
// A UID is not secret enough, since owner references and events show it. A new value of key changes the hash, and the pods are replaced.
// The child that is built from the input comes after the Secret, and waits until it exists.
func ContentHash[T client.Object](secret *Child[T, *corev1.Secret], key string, reads ...Read[T]) *Input[T, string] {
	contents := From(func(ctx context.Context, r client.Reader, owner T) (string, error) {
		return digestContents(ctx, r, owner, reads)
	}, reads...)
	live := secret.Live()
	in := set.NewCombinedInput([]*set.Input{contents.engine(), live.engine()}, func(values map[*set.Input]any) (any, error) {
		v := &Values[T]{values}
		digest, keys := contents.Value(v), live.Value(v)
		switch {
		case digest == "":
			return "", nil
		case keys == nil || len(keys.Data[key]) < minKeyLength:
			return nil, fmt.Errorf("ContentHash: key %q of the Secret of %s has less than %d bytes: give that child Generate(%q, 32)",
				key, secret.child.Describe(), minKeyLength, key)
		}
		keyed := hmac.New(sha256.New, keys.Data[key])
		keyed.Write([]byte(digest))
		return "v1:" + hex.EncodeToString(keyed.Sum(nil)[:16]), nil
	})
	for _, one := range reads {
		switch one.reference.Object.(type) {
		case *corev1.ConfigMap, *corev1.Secret:
		default:
			in.Mistake = cmp.Or(in.Mistake, fmt.Errorf("ContentHash of %T: it hashes *corev1.ConfigMap and *corev1.Secret", one.reference.Object))
		}
	}
	return &Input[T, string]{in}
}

// digestContents returns a digest of the contents of the declared objects. The digest must not leave the process,
// because it has no key. If nothing is declared, it is empty.
func digestContents[T client.Object](ctx context.Context, r client.Reader, owner T, reads []Read[T]) (string, error) {
	var contents [][]string
	var missing set.MissingError
	for _, one := range reads {
		for _, name := range one.reference.Names(owner) {
			obj := reflect.New(reflect.TypeOf(one.reference.Object).Elem()).Interface().(client.Object)
			kind := reflect.TypeOf(one.reference.Object).Elem().Name()
			switch err := r.Get(ctx, name, obj); {
			case apierrors.IsNotFound(err):
				missing = append(missing, kind+" "+name.Name)
				continue
			case err != nil:
				return "", fmt.Errorf("read %s %s: %w", kind, name, err)
			}
			contents = append(contents, append([]string{kind, name.Namespace, name.Name}, dataOf(obj)...))
		}
	}
	var err error
	if len(missing) > 0 {
		slices.Sort(missing)
		err = missing
	}
	if len(contents)+len(missing) == 0 {
		return "", err
	}
	slices.SortFunc(contents, slices.Compare)
	contents = slices.CompactFunc(contents, slices.Equal)
	digest := sha256.New()
	for _, content := range contents {
		for _, part := range append([]string{strconv.Itoa(len(content))}, content...) {
			fmt.Fprintf(digest, "%d:%s", len(part), part)
		}
	}
	return string(digest.Sum(nil)), err
}

// dataOf returns the fields, keys and values of a ConfigMap or a Secret, sorted.
func dataOf(obj client.Object) (parts []string) {
	add := func(field, key, value string) { parts = append(parts, field, key, value) }
	switch obj := obj.(type) {
	case *corev1.Secret:
		for _, key := range slices.Sorted(maps.Keys(obj.Data)) {
			add("data", key, string(obj.Data[key]))
		}
	case *corev1.ConfigMap:
		for _, key := range slices.Sorted(maps.Keys(obj.Data)) {
			add("data", key, obj.Data[key])
		}
		for _, key := range slices.Sorted(maps.Keys(obj.BinaryData)) {
			add("binaryData", key, string(obj.BinaryData[key]))
		}
	}
	return parts
}

// secretContent says whether the values of a Go type contain Secrets: never, always, or depending on the value.
type secretContent int

const (
	neverSecret   secretContent = iota
	perhapsSecret               // the type contains interfaces, so it depends on the value
	alwaysSecret
)

var secretContents sync.Map // reflect.Type → secretContent

// containsSecret reports whether a value is or contains a Secret, typed or unstructured.
func containsSecret(v reflect.Value) bool {
	if !v.IsValid() {
		return false
	}
	known, ok := secretContents.Load(v.Type())
	if !ok {
		known, _ = secretContents.LoadOrStore(v.Type(), secretContentOf(v.Type(), map[reflect.Type]bool{}))
	}
	switch known.(secretContent) {
	case neverSecret:
		return false
	case alwaysSecret:
		return true
	case perhapsSecret:
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return containsSecret(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if containsSecret(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		if content, ok := reflect.TypeAssert[map[string]any](v); ok && isSecret(content) {
			return true
		}
		for _, e := range v.Seq2() {
			if containsSecret(e) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && containsSecret(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// isSecret reports whether an unstructured object with this content is a Secret.
func isSecret(content map[string]any) bool {
	return content["kind"] == "Secret" && content["apiVersion"] == corev1.SchemeGroupVersion.String()
}

// secretContentOf returns what a Go type alone says about Secrets in its values. seen has the types that are already being looked at,
// so that a type that contains itself ends the recursion.
func secretContentOf(t reflect.Type, seen map[reflect.Type]bool) secretContent {
	if seen[t] {
		return neverSecret
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return perhapsSecret
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return secretContentOf(t.Elem(), seen)
	case reflect.Struct:
		if t == reflect.TypeFor[corev1.Secret]() {
			return alwaysSecret
		}
		found := neverSecret
		for f := range t.Fields() {
			found = max(found, secretContentOf(f.Type, seen))
		}
		return found
	}
	return neverSecret
}
