package compare

import (
	"reflect"

	"github.com/opblocks/opblocks/internal/applyschema"
)

// place is what is known of two values that are compared.
type place struct {
	applyschema.Schema
	goType      reflect.Type // the API server's type, if the values are trees and the type is known
	atomic      bool         // they are inside an atomic value, which belongs to one writer as a whole
	serverOwned []string     // the fields that a client does not send
}

// serverOwned are the fields of an object that a client does not send. The metadata has more of them.
var (
	serverOwned         = []string{"apiVersion", "kind", "status"}
	serverOwnedMetadata = []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
		"generation", "managedFields", "resourceVersion", "selfLink", "uid",
	}
)

// below returns the place of a field or of a map's value.
func (at place) below(name string) place {
	below := place{Schema: at.Child(name), atomic: at.atomic}
	if at.serverOwned != nil && name == "metadata" { // of the object itself
		below.serverOwned = serverOwnedMetadata
	}
	switch t := elemOf(at.goType); {
	case t == nil:
	case t.Kind() == reflect.Map:
		below.goType = t.Elem()
	case t.Kind() == reflect.Struct:
		if f := goTypeOf(t).field(name); f != nil {
			below.goType = f.typ
		}
	}
	return below
}

// dropsEmpty reports whether the API server drops a field if it is empty: there it is no pointer, so that an empty value
// is the same as none.
func (at place) dropsEmpty(name string) bool {
	t := elemOf(at.goType)
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	f := goTypeOf(t).field(name)
	return f != nil && f.omitEmpty && f.kind != reflect.Pointer && f.kind != reflect.Interface && f.kind != reflect.Struct
}

// item returns the place of a list's items.
func (at place) item() place {
	item := place{Schema: at.Element(), atomic: at.atomic || !at.IsAssociative()}
	if t := elemOf(at.goType); t != nil && t.Kind() == reflect.Slice {
		item.goType = t.Elem()
	}
	return item
}

func elemOf(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
