package compare

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// structKey identifies a compiled struct. The same Go type is compared differently where the schema differs, and inside
// an atomic value.
type structKey struct {
	typ    reflect.Type
	atom   *smdschema.Map
	atomic bool
}

type compiler struct {
	structs map[structKey]*structComparer
	depth   int
	// atomic is true while the inside of an atomic value is compiled. All of an atomic value belongs to one writer.
	atomic bool
}

// maxDepth is deeper than any type of the API that does not contain itself. A struct that contains itself is found by
// its structKey. A slice or map type that contains itself is encoded by encoding/json.
const maxDepth = 100

func (c *compiler) compile(t reflect.Type, ref typeRef) comparer {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return quantityComparer{}
	case reflect.TypeFor[intstr.IntOrString]():
		return intOrStringComparer{}
	case reflect.TypeFor[metav1.Time]():
		return timeComparer{}
	}
	if p := reflect.PointerTo(t); t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface &&
		(p.Implements(jsonMarshaler) || p.Implements(textMarshaler)) {
		return jsonComparer{typ: t}
	}
	c.depth++
	defer func() { c.depth-- }()
	switch t.Kind() {
	case reflect.String:
		return stringComparer{}
	case reflect.Bool:
		return boolComparer{}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intComparer{size: t.Size()}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return uintComparer{size: t.Size()}
	case reflect.Pointer:
		return pointerComparer{elem: c.compile(t.Elem(), ref)}
	case reflect.Struct:
		if unsupportedField(t) == "" && c.depth < maxDepth {
			return c.compileStruct(t, ref)
		}
	case reflect.Slice:
		if c.depth < maxDepth {
			return c.compileList(t, ref)
		}
	case reflect.Map:
		if c.depth < maxDepth && t.Key().Kind() == reflect.String && !t.Key().Implements(textMarshaler) {
			return c.compileMap(t, ref)
		}
	}
	return jsonComparer{typ: t}
}

func (c *compiler) compileStruct(t reflect.Type, ref typeRef) *structComparer {
	key := structKey{typ: t, atom: ref.atom.Map, atomic: c.atomic}
	if known, ok := c.structs[key]; ok {
		return known
	}
	n := &structComparer{exact: ref.isSelector()}
	c.structs[key] = n // before its fields, since a type may contain itself
	outer := c.atomic
	c.atomic = outer || ref.isAtomicMap()
	n.fields = c.structFields(t, ref, 0)
	c.atomic = outer
	slices.SortStableFunc(n.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	n.copyProbes()
	return n
}

func (c *compiler) compileList(t reflect.Type, ref typeRef) comparer {
	if t.Elem().Kind() == reflect.Uint8 {
		return bytesComparer{}
	}
	outer := c.atomic
	c.atomic = outer || !ref.isAssociative()
	elem := c.compile(t.Elem(), ref.element())
	c.atomic = outer

	list := listComparer{elem: elem, size: t.Elem().Size()}
	if outer || !ref.isAssociative() {
		return list
	}
	if len(ref.atom.List.Keys) == 0 {
		return setComparer{list}
	}
	item, ok := elem.(*structComparer)
	if !ok {
		return list
	}
	keyed := keyedListComparer{listComparer: list}
	for _, name := range ref.atom.List.Keys {
		f := item.field(name)
		if f == nil {
			return list
		}
		_, fallback := ref.element().field(name)
		keyed.keys = append(keyed.keys, itemKey{field: f, fallback: encodedDefault(fallback)})
	}
	return keyed
}

// encodedDefault returns the default of a list key as JSON, or nil if it has none.
func encodedDefault(v any) []byte {
	if v == nil {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

func (c *compiler) compileMap(t reflect.Type, ref typeRef) comparer {
	exact := c.atomic || ref.isAtomicMap()
	if t == reflect.TypeFor[map[string]string]() {
		return stringMapComparer{exact: exact}
	}
	outer := c.atomic
	c.atomic = exact
	n := mapComparer{typ: t, elem: c.compile(t.Elem(), ref.element()), exact: exact}
	c.atomic = outer
	if t == reflect.TypeFor[corev1.ResourceList]() {
		return resourceListComparer{n}
	}
	return n
}

// unsupportedField describes a field of the struct that encoding/json encodes by a rule that no type of the API needs
// and that is not implemented here. It returns "" if there is none. encoding/json encodes such structs.
func unsupportedField(t reflect.Type) string {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case slices.Contains(strings.Split(options, ","), "string"):
			return "field " + f.Name + " has the option string"
		case !f.Anonymous || name != "":
		case f.Type.Kind() == reflect.Pointer:
			return "field " + f.Name + " is an embedded pointer"
		case f.Type.Kind() == reflect.Struct:
			if why := unsupportedField(f.Type); why != "" {
				return why
			}
		}
	}
	return ""
}
