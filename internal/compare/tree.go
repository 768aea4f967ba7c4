package compare

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/opblocks/opblocks/internal/applyschema"
)

// A tree is a value as decoded JSON: map[string]any, []any, strings, numbers of any Go type, bools and nil.

// EncodeError says that a value has no JSON form: its marshaler returned an error, which Unwrap returns.
type EncodeError struct {
	Type reflect.Type
	Err  error
}

func (e *EncodeError) Error() string { return fmt.Sprintf("%s has no JSON form: %v", e.Type, e.Err) }
func (e *EncodeError) Unwrap() error { return e.Err }

// treeBuilder makes trees from Go values. It leaves out what is not sent: see doc.go.
type treeBuilder struct {
	err   error // the first error, which is an *EncodeError
	nulls bool  // keeps the nulls in raw JSON
}

func (b *treeBuilder) tree(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		return b.tree(v.Elem())
	}
	g := goTypeOf(v.Type())
	switch g.form {
	case opaque:
		return b.decoded(v)
	case quantity:
		q, _ := reflect.TypeAssert[resource.Quantity](v) // a copy, because Quantity.String changes its receiver
		return q.String()
	case intOrString:
		i, _ := reflect.TypeAssert[intstr.IntOrString](v)
		if i.Type == intstr.String {
			return i.StrVal
		}
		return int64(i.IntVal)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Struct:
		return b.fields(v, g.fields)
	case reflect.Slice:
		return b.list(v)
	case reflect.Map:
		m := make(map[string]any, v.Len())
		for i := v.MapRange(); i.Next(); {
			m[i.Key().String()] = b.tree(i.Value())
		}
		return m
	}
	if v.CanUint() {
		return v.Uint()
	}
	return v.Int()
}

func (b *treeBuilder) fields(v reflect.Value, fields []goField) map[string]any {
	m := map[string]any{}
	for i := range fields {
		f := &fields[i]
		value := f.of(v)
		if isUnset(value, f.omitEmpty) {
			continue
		}
		tree := b.tree(value)
		inner, _ := tree.(map[string]any)
		switch {
		case tree == nil && value.Kind() != reflect.Pointer: // a pointer to raw JSON may hold a null that has to be sent
		case inner != nil && len(inner) == 0 && value.Kind() == reflect.Struct && goTypeOf(f.typ).form == byKind:
		default:
			m[f.name] = tree
		}
	}
	return m
}

func (b *treeBuilder) list(v reflect.Value) any {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return base64.StdEncoding.EncodeToString(v.Bytes())
	}
	items := make([]any, v.Len())
	for i := range items {
		items[i] = b.tree(v.Index(i))
	}
	return items
}

// decoded returns a value as a tree, decoded from what encoding/json writes for it.
func (b *treeBuilder) decoded(v reflect.Value) any {
	pointer := reflect.New(v.Type()) // the method that marshals the value may belong to the pointer
	pointer.Elem().Set(v)
	encoded, err := json.Marshal(pointer.Interface())
	var tree any
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(encoded))
		d.UseNumber()
		err = d.Decode(&tree)
	}
	if err != nil && b.err == nil {
		b.err = &EncodeError{Type: v.Type(), Err: err}
	}
	return copied(tree, b.nulls && !isPlainStruct(v.Type()))
}

// copied returns a copy of a tree, with or without the nulls in its maps. Its floats have the format in which they were always sent.
func copied(tree any, nulls bool) any {
	switch tree := tree.(type) {
	case map[string]any:
		m := make(map[string]any, len(tree))
		for k, v := range tree {
			if v != nil || nulls {
				m[k] = copied(v, nulls)
			}
		}
		return m
	case []any:
		items := make([]any, len(tree))
		for i, v := range tree {
			items[i] = copied(v, nulls)
		}
		return items
	case float64:
		return json.Number(strconv.FormatFloat(tree, 'g', -1, 64))
	}
	return tree
}

// dropNulls removes nulls from the maps of a tree, in place. It keeps a null if the API server stores nulls in this field.
func dropNulls(schema applyschema.Schema, tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for k, v := range tree {
			if child := schema.Child(k); v == nil && !child.TakesNull() {
				delete(tree, k)
			} else {
				dropNulls(child, v)
			}
		}
	case []any:
		for _, v := range tree {
			dropNulls(schema.Element(), v)
		}
	}
}

// escapes replaces the escapes that encoding/json writes by the ones that the first release of this module wrote. Clusters store hashes of
// these bytes, so the bytes must not change.
var escapes = strings.NewReplacer(
	`\\`, `\\`, // keeps a backslash from being taken for the begin of an escape
	`\b`, `\u0008`, `\t`, `\u0009`, `\n`, `\u000a`, `\f`, `\u000c`, `\r`, `\u000d`, `\u2028`, "\u2028", `\u2029`, "\u2029",
)

// appendJSON appends a tree as JSON with sorted keys.
func appendJSON(b []byte, tree any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(tree); err != nil {
		return nil, &EncodeError{Type: reflect.TypeOf(tree), Err: err}
	}
	encoded := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if bytes.IndexByte(encoded, '\\') >= 0 {
		return append(b, escapes.Replace(string(encoded))...), nil
	}
	return append(b, encoded...), nil
}
