package compare

import (
	"reflect"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/diff"
)

// place describes where two compared values are in their objects: their schema and their path.
type place struct {
	schema      applyschema.Schema
	path        diff.Path // nil if the walk does not collect differences
	serverOwned []string  // the fields at this place that a client does not send
	atomic      bool      // the values are inside of a value that server-side apply replaces as a whole

	// goType and dropsEmpty are set if the values are trees, and the API server's Go type is known.
	goType reflect.Type
	// dropsEmpty means that the API server drops an empty value there: the field is not a pointer, so empty is the same as unset.
	dropsEmpty bool
}

// serverOwned and serverOwnedMetadata are the fields of an object and of its metadata that a client does not send.
var (
	serverOwned         = []string{"apiVersion", "kind", "status"}
	serverOwnedMetadata = []string{
		"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp",
		"generation", "managedFields", "resourceVersion", "selfLink", "uid",
	}
)

// below returns the place of a struct's field or of a map's value. In the path, a key of a map is in brackets, because it may contain dots
// and slashes.
func (at place) below(name string, isKey bool) place {
	below := place{schema: at.schema.Child(name), atomic: at.atomic || at.schema.IsAtomicMap()}
	if at.path != nil && isKey {
		below.path = at.path.Item(name)
	} else if at.path != nil {
		below.path = at.path.Field(name)
	}
	if at.serverOwned != nil && name == "metadata" { // only the metadata of the object itself
		below.serverOwned = serverOwnedMetadata
	}
	switch t := elemOf(at.goType); {
	case t == nil:
	case t.Kind() == reflect.Map:
		below.goType = t.Elem()
	case t.Kind() == reflect.Struct:
		if f := goTypeOf(t).field(name); f != nil {
			kind := f.typ.Kind()
			below.goType = f.typ
			below.dropsEmpty = f.omitEmpty && kind != reflect.Pointer && kind != reflect.Interface && kind != reflect.Struct
		}
	}
	return below
}

// item returns the place of the items of a list.
func (at place) item() place {
	item := place{schema: at.schema.Element(), atomic: at.atomic || !at.schema.IsAssociative()}
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
