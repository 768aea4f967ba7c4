package ownedresources

import (
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// holding is whether values of a type have Secrets in them.
type holding int

const (
	never holding = iota
	asIs          // what its interfaces and maps hold decides
	always
)

var holdings sync.Map // reflect.Type → holding: a function of the type

// holdsSecret reports whether there is a Secret in a value, typed or not.
func holdsSecret(v reflect.Value) bool {
	if !v.IsValid() {
		return false
	}
	known, ok := holdings.Load(v.Type())
	if !ok {
		known, _ = holdings.LoadOrStore(v.Type(), holdingOf(v.Type(), map[reflect.Type]bool{}))
	}
	switch known.(holding) {
	case never:
		return false
	case always:
		return true
	case asIs:
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return holdsSecret(v.Elem())
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if holdsSecret(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		if content, ok := reflect.TypeAssert[map[string]any](v); ok && isSecret(content) {
			return true
		}
		for _, e := range v.Seq2() {
			if holdsSecret(e) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && holdsSecret(v.Field(i)) {
				return true
			}
		}
	}
	return false
}

// isSecret reports whether the content of an untyped object is a Secret's.
func isSecret(content map[string]any) bool {
	return content["kind"] == "Secret" && content["apiVersion"] == corev1.SchemeGroupVersion.String()
}

func holdingOf(t reflect.Type, seen map[reflect.Type]bool) holding {
	if seen[t] {
		return never
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Interface:
		return asIs
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdingOf(t.Elem(), seen)
	case reflect.Struct:
		if t == reflect.TypeFor[corev1.Secret]() {
			return always
		}
		found := never
		for f := range t.Fields() {
			found = max(found, holdingOf(f.Type, seen))
		}
		return found
	}
	return never
}
