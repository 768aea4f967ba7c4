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
	// goType is the API server's Go type for the kind. It is set only for unstructured objects of the kinds in client-go.
	goType reflect.Type
}

// Compile returns the Comparer for objects of obj's Go type, which must be a pointer to a struct. It uses the schema of kind. If the kind
// has no schema, its objects are compared as the fields of a custom resource are by default.
//
// For any other type, and for a struct with fields that only encoding/json can encode, it returns an error. It also returns the errors of
// schemas.
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

// CompileUntyped returns the Comparer for the unstructured objects of a kind. The live objects may be unstructured or of a Go type. If the
// kind has no schema, its objects are compared as the fields of a custom resource are by default. CompileUntyped returns the errors of
// schemas.
//
// Zeros and `{}` in unstructured objects are sent, unlike those in objects of a Go type: without a Go type, they never stand for an unset
// field.
func CompileUntyped(kind schema.GroupVersionKind, schemas applyschema.Schemas) (*Comparer, error) {
	root, err := schemas.Of(kind)
	if err != nil {
		return nil, err
	}
	return &Comparer{schema: root, untyped: true, goType: applyschema.GoType(kind)}, nil
}

// Schema returns the schema of the kind.
func (c *Comparer) Schema() applyschema.Schema { return c.schema }

// sent returns, as a tree, what is sent of an object, without its apiVersion, kind and uid. If rawNulls is true, the nulls in raw JSON of a
// typed object are kept.
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

// sendsNulls reports whether nulls of an object are sent. If so, the nulls of nullable fields are sent, or all nulls if it is not known
// which fields are nullable. The API server decodes the kinds of client-go into Go types, in which null is the same as unset.
func (c *Comparer) sendsNulls() bool { return c.untyped && c.goType == nil }

// DropServerOwned unsets, in a typed object, the fields that the API server sets: its status, uid, resourceVersion and others. A builder
// may return a deep copy of a live object, which has these fields. No apply sends them.
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

// AppendJSON appends to b what is sent of obj, without its apiVersion, kind and uid. It also leaves out the nulls in raw JSON of a typed
// object, which recorded hashes never had. The JSON depends only on the values of obj. If a value has no JSON form, the error is an
// [*EncodeError].
func (c *Comparer) AppendJSON(b []byte, obj runtime.Object) ([]byte, error) {
	tree, err := c.sent(obj, false)
	if err != nil {
		return nil, err
	}
	return appendJSON(b, tree)
}

// AppendApply appends the body of a server-side apply of obj: the JSON of AppendJSON, with apiVersion, kind and the nulls in raw JSON. If
// uid or version is not empty, it is added, so that it is a precondition on the live object.
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

// Covers reports whether have has every value that would be sent of want.
func (c *Comparer) Covers(want, have runtime.Object) bool {
	walk := c.compare(want, have, false)
	return !walk.different
}

// Differences returns the fields in which have does not cover want, in a stable order. If have covers want, it returns nil.
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
	if err := walk.build.err; err != nil { // AppendJSON returns the same error for want
		walk.different, walk.found = true, append(walk.found, Difference{Path: err.Error()})
	}
	return walk
}

// content returns an object as a tree (decoded JSON).
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
