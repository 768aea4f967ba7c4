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

// structKey names a struct node: the same Go type is read differently where the
// schema differs, or inside something atomic.
type structKey struct {
	typ    reflect.Type
	atom   *smdschema.Map
	atomic bool
}

type compiler struct {
	structs map[structKey]*structNode
	depth   int
	// atomic is set while compiling what lies inside an atomic value: all of it is ours.
	atomic bool
}

// maxDepth is deeper than any API type that does not contain itself. A struct may do that; a
// slice or map type that does is left to encoding/json.
const maxDepth = 100

func (c *compiler) node(t reflect.Type, ref typeRef) node {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return quantityNode{}
	case reflect.TypeFor[intstr.IntOrString]():
		return intOrStringNode{}
	case reflect.TypeFor[metav1.Time]():
		return timeNode{}
	}
	if p := reflect.PointerTo(t); t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface &&
		(p.Implements(jsonMarshaler) || p.Implements(textMarshaler)) {
		return opaqueNode{typ: t}
	}
	c.depth++
	defer func() { c.depth-- }()
	switch t.Kind() {
	case reflect.String:
		return stringNode{}
	case reflect.Bool:
		return boolNode{}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return intNode{size: t.Size()}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return uintNode{size: t.Size()}
	case reflect.Pointer:
		return pointerNode{elem: c.node(t.Elem(), ref)}
	case reflect.Struct:
		if unusual(t) == "" && c.depth < maxDepth {
			return c.structOf(t, ref)
		}
	case reflect.Slice:
		if c.depth < maxDepth {
			return c.sliceOf(t, ref)
		}
	case reflect.Map:
		if c.depth < maxDepth && t.Key().Kind() == reflect.String && !t.Key().Implements(textMarshaler) {
			return c.mapOf(t, ref)
		}
	}
	return opaqueNode{typ: t}
}

func (c *compiler) structOf(t reflect.Type, ref typeRef) *structNode {
	key := structKey{typ: t, atom: ref.atom.Map, atomic: c.atomic}
	if known, ok := c.structs[key]; ok {
		return known
	}
	n := &structNode{exact: ref.selector()}
	c.structs[key] = n // before its fields: a type may contain itself
	outer := c.atomic
	c.atomic = outer || ref.atomicMap()
	n.fields = c.fields(t, ref, 0)
	c.atomic = outer
	slices.SortStableFunc(n.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	n.probe()
	return n
}

func (c *compiler) fields(t reflect.Type, ref typeRef, offset uintptr) []field {
	var own, embedded []field
	for f := range t.Fields() {
		name, options, more := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" && !more:
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			embedded = append(embedded, c.fields(f.Type, ref, offset+f.Offset)...)
		case !f.IsExported():
		default:
			if name == "" {
				name = f.Name
			}
			typ, _ := ref.field(name)
			omitEmpty := omitsEmpty(options, f.Type.Kind())
			unset, n := newProbe(f.Type, offset+f.Offset, omitEmpty), c.node(f.Type, typ)
			own = append(own, field{
				name:      name,
				quoted:    string(appendString(nil, name)) + ":",
				offset:    offset + f.Offset,
				omitEmpty: omitEmpty,
				unset:     unset,
				decided:   unset.decides(f.Type, n, omitEmpty),
				node:      n,
			})
		}
	}
	// As in encoding/json, the outer field hides an embedded one of the same name.
	for _, e := range embedded {
		if !slices.ContainsFunc(own, func(f field) bool { return f.name == e.name }) {
			own = append(own, e)
		}
	}
	return own
}

// omitsEmpty reads a JSON tag's options. Of omitzero, only nil lists and maps are zero.
func omitsEmpty(options string, kind reflect.Kind) bool {
	list := strings.Split(options, ",")
	return slices.Contains(list, "omitempty") ||
		slices.Contains(list, "omitzero") && kind != reflect.Slice && kind != reflect.Map
}

func (c *compiler) sliceOf(t reflect.Type, ref typeRef) node {
	if t.Elem().Kind() == reflect.Uint8 {
		return bytesNode{}
	}
	outer := c.atomic
	c.atomic = outer || !ref.associative()
	elem := c.node(t.Elem(), ref.element())
	c.atomic = outer

	list := sliceNode{elem: elem, size: t.Elem().Size()}
	if outer || !ref.associative() {
		return list
	}
	if len(ref.atom.List.Keys) == 0 {
		return setNode{list}
	}
	item, ok := elem.(*structNode)
	if !ok {
		return list
	}
	keyed := keyedNode{sliceNode: list}
	for _, name := range ref.atom.List.Keys {
		f := item.field(name)
		if f == nil {
			return list
		}
		_, fallback := ref.element().field(name)
		keyed.keys = append(keyed.keys, key{field: f, fallback: encodedDefault(fallback)})
	}
	return keyed
}

// encodedDefault is a key's default as JSON; nil when there is none.
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

func (c *compiler) mapOf(t reflect.Type, ref typeRef) node {
	exact := c.atomic || ref.atomicMap()
	if t == reflect.TypeFor[map[string]string]() {
		return stringMapNode{exact: exact}
	}
	outer := c.atomic
	c.atomic = exact
	n := mapNode{typ: t, elem: c.node(t.Elem(), ref.element()), exact: exact}
	c.atomic = outer
	if t == reflect.TypeFor[corev1.ResourceList]() {
		return resourcesNode{n}
	}
	return n
}
