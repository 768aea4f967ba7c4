package compare

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/diff"
)

// Comparer serialises and compares the objects of one kind. It is safe for concurrent use.
type Comparer struct {
	schema  applyschema.Schema
	untyped bool
	// goType is the Go type that the API server has for the kind. It is set only for unstructured objects of the kinds in client-go.
	goType reflect.Type
}

// Compile returns the Comparer for objects of obj's Go type, which must be a pointer to a struct. It uses the schema of
// kind. A kind without a schema is compared by the defaults of custom resources.
//
// It returns an error for any other type, and for a struct with fields that only encoding/json can encode. It also
// returns the errors of schemas.
func Compile(obj runtime.Object, kind schema.GroupVersionKind, schemas applyschema.Schemas) (*Comparer, error) {
	t := reflect.TypeOf(obj)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T: only a pointer to a struct can be compared", obj)
	}
	if why := unsupportedField(t.Elem()); why != "" {
		return nil, fmt.Errorf("%s cannot be compared: its %s: use a plain field instead", t.Elem(), why)
	}
	root, err := schemas.Of(kind)
	if err != nil {
		return nil, err
	}
	return &Comparer{schema: root}, nil
}

// CompileUntyped returns the Comparer for the unstructured objects of a kind. It compares them with unstructured objects,
// or with objects of a Go type. A kind without a schema is compared by the defaults of custom resources. CompileUntyped
// returns the errors of schemas.
//
// Unlike objects of a Go type, unstructured objects are sent with their zeros and `{}`: without a Go type, these never
// stand for an unset field.
func CompileUntyped(kind schema.GroupVersionKind, schemas applyschema.Schemas) (*Comparer, error) {
	root, err := schemas.Of(kind)
	if err != nil {
		return nil, err
	}
	return &Comparer{schema: root, untyped: true, goType: applyschema.GoType(kind)}, nil
}

// Schema returns the schema of the kind.
func (c *Comparer) Schema() applyschema.Schema { return c.schema }

// sent returns what is sent of an object as a tree, without its apiVersion, kind and uid. rawNulls keeps the nulls in raw JSON
// of a typed object.
func (c *Comparer) sent(obj runtime.Object, rawNulls bool) (map[string]any, error) {
	var tree map[string]any
	if c.untyped {
		tree, _ = copied(obj.(runtime.Unstructured).UnstructuredContent(), c.sendsNulls()).(map[string]any)
		if c.schema.KnowsNulls() {
			dropNulls(c.schema, tree)
		}
	} else {
		v := reflect.ValueOf(obj).Elem()
		build := treeBuilder{nulls: rawNulls}
		tree = build.fields(v, goTypeOf(v.Type()).fields)
		if build.err != nil {
			return nil, build.err
		}
	}
	for _, field := range serverOwned {
		delete(tree, field)
	}
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		dropNulls(applyschema.Schema{}, metadata)
		for _, field := range serverOwnedMetadata {
			delete(metadata, field)
		}
		if len(metadata) == 0 && !c.untyped {
			delete(tree, "metadata")
		}
	}
	return tree, nil
}

// sendsNulls reports whether the nulls of an object are sent: the nulls of nullable fields, or all nulls if it is not
// known which fields are nullable. The API server decodes the kinds of client-go into Go types, where null is the same
// as unset.
func (c *Comparer) sendsNulls() bool { return c.untyped && c.goType == nil }

// DropServerOwned unsets the fields of a typed object that the API server owns, in place: its status, uid, resourceVersion and others. A
// deep copy of a live object has these fields, and no apply sends them.
func (c *Comparer) DropServerOwned(obj runtime.Object) {
	root := reflect.ValueOf(obj).Elem()
	for _, f := range goTypeOf(root.Type()).fields {
		switch {
		case f.name == "status":
			f.of(root).SetZero()
		case f.name == "metadata" && f.typ.Kind() == reflect.Struct:
			metadata := f.of(root)
			for _, name := range serverOwnedMetadata {
				if field := goTypeOf(f.typ).field(name); field != nil {
					field.of(metadata).SetZero()
				}
			}
		}
	}
}

// AppendJSON appends to b what is sent of obj, without its apiVersion, kind and uid, and without the nulls in raw JSON of a
// typed object: recorded hashes never had them. The JSON is deterministic: it depends on the values of obj alone. The error is an [*EncodeError] if a value has no JSON form.
func (c *Comparer) AppendJSON(b []byte, obj runtime.Object) ([]byte, error) {
	tree, err := c.sent(obj, false)
	if err != nil {
		return nil, err
	}
	return appendJSON(b, tree)
}

// AppendApply appends the body of a server-side apply of obj: the JSON of AppendJSON, with apiVersion, kind and the nulls in
// raw JSON. If uid or version is not empty, the body has it too, as a precondition on the live object.
func (c *Comparer) AppendApply(b []byte, obj runtime.Object, kind schema.GroupVersionKind, uid, version string) ([]byte, error) {
	tree, err := c.sent(obj, true)
	if err != nil {
		return nil, err
	}
	tree["apiVersion"], tree["kind"] = kind.GroupVersion().String(), kind.Kind
	if metadata, ok := tree["metadata"].(map[string]any); ok {
		if uid != "" {
			metadata["uid"] = uid
		}
		if version != "" {
			metadata["resourceVersion"] = version
		}
	}
	return appendJSON(b, tree)
}

// Covers reports whether have has everything that would be sent of want.
func (c *Comparer) Covers(want, have runtime.Object) bool {
	walk := c.compare(want, have, false)
	return !walk.different
}

// Differences returns the places where have does not cover want, in a stable order. It returns nil if have covers want.
func (c *Comparer) Differences(want, have runtime.Object) []Difference {
	walk := c.compare(want, have, true)
	return walk.found
}

func (c *Comparer) compare(want, have runtime.Object, collects bool) comparison {
	walk := comparison{trees: c.untyped, nulls: c.sendsNulls() || !c.untyped, collects: collects}
	w, h := reflect.ValueOf(want), reflect.ValueOf(have)
	if c.untyped {
		w, h = reflect.ValueOf(walk.content(want)), reflect.ValueOf(walk.content(have))
	}
	at := place{schema: c.schema, goType: c.goType, serverOwned: serverOwned}
	if collects {
		at.path = diff.Path{}
	}
	walk.compare(at, w, h)
	if err := walk.build.err; err != nil { // AppendJSON returns the error of want
		walk.different, walk.found = true, append(walk.found, Difference{Path: err.Error()})
	}
	return walk
}

// content returns an object as a tree.
func (c *comparison) content(obj runtime.Object) map[string]any {
	if u, ok := obj.(runtime.Unstructured); ok {
		return u.UnstructuredContent()
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		c.build.err = err
	}
	return content
}
