package compare

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Untyped serialises and compares unstructured objects of one kind. [CompileUntyped] returns it. It is safe for
// concurrent use.
//
// Unlike [Typed] it sends zeros and `{}`: without a Go type, nobody can have meant an unset field by them. Only nulls
// and what the API server owns are left out.
type Untyped struct {
	root   typeRef
	goType reflect.Type // of the kinds in client-go, nil for others
}

// CompileUntyped returns the Untyped for a kind. A kind without a schema is compared by the defaults of custom
// resources. It returns errors of schemas.
func CompileUntyped(kind schema.GroupVersionKind, schemas Schemas) (*Untyped, error) {
	root, err := schemas.lookup(kind)
	if err != nil {
		return nil, err
	}
	u := &Untyped{root: root}
	if builtIn, err := clientGoKinds().New(kind); err == nil {
		u.goType = reflect.TypeOf(builtIn).Elem()
	}
	return u, nil
}

// Schema returns the schema of the kind.
func (u *Untyped) Schema() Schema { return Schema{u.root} }

// sentContent returns a copy of the object's top level without what the API server owns.
func sentContent(obj runtime.Object) map[string]any {
	content := obj.(runtime.Unstructured).UnstructuredContent()
	sent := make(map[string]any, len(content))
	for k, v := range content {
		switch k {
		case "apiVersion", "kind", "status":
		case "metadata":
			sent[k] = withoutKeys(v, serverOwned)
		default:
			sent[k] = v
		}
	}
	return sent
}

func withoutKeys(v any, keys []string) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	kept := make(map[string]any, len(m))
	for k, v := range m {
		if !slices.Contains(keys, k) {
			kept[k] = v
		}
	}
	return kept
}

// AppendJSON appends to b what is sent of obj, as [Typed.AppendJSON] does. The error is always nil.
func (*Untyped) AppendJSON(b []byte, obj runtime.Object) ([]byte, error) {
	return appendUnstructured(b, sentContent(obj)), nil
}

// AppendApply appends the body of a server-side apply of obj, as [Typed.AppendApply] does. The error is always nil.
func (*Untyped) AppendApply(b []byte, obj runtime.Object, kind schema.GroupVersionKind, uid, version string) ([]byte, error) {
	content := sentContent(obj)
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	if metadata, ok := content["metadata"].(map[string]any); ok { // withoutKeys has copied it
		if uid != "" {
			metadata["uid"] = uid
		}
		if version != "" {
			metadata["resourceVersion"] = version
		}
	}
	return appendUnstructured(b, content), nil
}

// Covers reports whether have has everything that would be sent of want.
func (u *Untyped) Covers(want, have runtime.Object) bool {
	if u.goType == nil {
		return u.covers(nil, want, have)
	}
	return u.covers(nil, want, have) || len(u.Differences(want, have)) == 0
}

// Differences returns the places where have does not cover want, as [Typed.Differences] does.
func (u *Untyped) Differences(want, have runtime.Object) []Difference {
	var r recorder
	u.covers(&r, want, have)
	return r.found
}

func (u *Untyped) covers(r *recorder, want, have runtime.Object) bool {
	c := unstructuredComparison{recorder: r}
	if r != nil {
		c.goType = u.goType
	}
	return c.covers(u.root, sentContent(want), have.(runtime.Unstructured).UnstructuredContent())
}

// unstructuredComparison is a walk over two values and their schema.
type unstructuredComparison struct {
	recorder *recorder
	atomic   bool // inside an atomic value, which belongs to one writer as a whole
	// goType is the API server's type of the value, nil if it is unknown or if nothing is recorded.
	goType reflect.Type
}

func (c *unstructuredComparison) covers(ref typeRef, want, have any) bool {
	switch want := want.(type) {
	case map[string]any:
		if live, ok := have.(map[string]any); ok {
			return c.coversMap(ref, want, live)
		}
	case []any:
		if live, ok := have.([]any); ok || have == nil {
			return c.coversList(ref, want, live)
		}
	default:
		if sameScalar(ref, want, have) {
			return true
		}
	}
	return c.record(want, have)
}

func (c *unstructuredComparison) record(want, have any) bool {
	if c.recorder == nil {
		return false
	}
	var live []byte
	if have != nil {
		live = appendUnstructured(nil, have)
	}
	return c.recorder.record(appendUnstructured(nil, want), live)
}

func (c *unstructuredComparison) coversMap(ref typeRef, want, have map[string]any) bool {
	outer := c.atomic
	c.atomic = outer || ref.isAtomicMap()
	goType := c.goType
	defer func() { c.atomic, c.goType = outer, goType }()
	isStruct := ref.atom.Map != nil && len(ref.atom.Fields) > 0
	if (c.atomic && !isStruct || ref.isSelector()) && countNonNull(want) != countNonNull(have) {
		return c.record(want, have)
	}
	all := true
	for _, k := range sortedKeys(want, nil) {
		if want[k] == nil {
			continue
		}
		var value typeRef
		switch {
		case isStruct:
			value, _ = ref.field(k)
			c.recorder.enterField(k)
		case ref.atom.Map == nil:
			c.recorder.enterField(k)
		default:
			value = ref.element()
			c.recorder.enterMapKey(k)
		}
		var dropsEmpty, ok bool
		c.goType, dropsEmpty = goField(goType, k)
		switch live, there := have[k]; {
		case there:
			ok = c.covers(value, want[k], live)
		case dropsEmpty && isEmpty(want[k]):
			ok = true
		default:
			ok = c.record(want[k], nil)
		}
		c.recorder.leave()
		if !ok {
			if c.recorder == nil {
				return false
			}
			all = false
		}
	}
	return all
}

// goField returns the Go type of a struct's field, or of a map's value. It reports whether the API server drops the
// field if it is empty: there it is no pointer, so that an empty value is the same as none.
func goField(t reflect.Type, name string) (field reflect.Type, dropsEmpty bool) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return nil, false
	case t.Kind() == reflect.Map:
		return t.Elem(), false
	case t.Kind() != reflect.Struct:
		return nil, false
	}
	for f := range t.Fields() {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && tag == "":
			if field, dropsEmpty = goField(f.Type, name); field != nil {
				return field, dropsEmpty
			}
		case tag == name:
			kind := f.Type.Kind()
			return f.Type, kind != reflect.Pointer && kind != reflect.Interface && kind != reflect.Struct && omitsEmpty(options, kind)
		}
	}
	return nil, false
}

// goElem returns the Go type of a list's items.
func goElem(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Slice {
		return nil
	}
	return t.Elem()
}

// isEmpty reports whether encoding/json takes a value for empty.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	n, ok := number(v)
	return ok && n == 0
}

// countNonNull returns the number of keys that are sent.
func countNonNull(m map[string]any) (n int) {
	for _, v := range m {
		if v != nil {
			n++
		}
	}
	return n
}

func (c *unstructuredComparison) coversList(ref typeRef, want, have []any) bool {
	if c.atomic || !ref.isAssociative() {
		return c.coversAtomicList(ref, want, have)
	}
	goType := c.goType
	c.goType = goElem(goType)
	defer func() { c.goType = goType }()
	keys := ref.atom.List.Keys
	all, next := true, 0
	for _, item := range want {
		at := findItem(ref.element(), keys, item, have, next)
		if at < 0 && len(keys) > 0 {
			all = false
		}
		if at < 0 {
			at = findItem(ref.element(), keys, item, have, 0)
		}
		c.recorder.enterUnstructuredKeys(keys, item)
		switch {
		case at < 0:
			all = c.record(item, nil)
		case len(keys) > 0:
			if at < next && c.recorder != nil {
				c.recorder.record([]byte(`"in order"`), []byte(`"out of order"`))
			}
			all = c.covers(ref.element(), item, have[at]) && all
			next = max(next, at+1)
		}
		c.recorder.leave()
		if !all && c.recorder == nil {
			return false
		}
	}
	return all
}

func (c *unstructuredComparison) coversAtomicList(ref typeRef, want, have []any) bool {
	if len(want) != len(have) {
		return c.record(want, have)
	}
	outer := c.atomic
	c.atomic = true
	goType := c.goType
	c.goType = goElem(goType)
	defer func() { c.atomic, c.goType = outer, goType }()
	all := true
	for i, item := range want {
		c.recorder.enterIndex(i)
		ok := c.covers(ref.element(), item, have[i])
		c.recorder.leave()
		if !ok {
			if c.recorder == nil {
				return false
			}
			all = false
		}
	}
	return all
}

// findItem returns the index of the live item with the same keys, or with the same value if the list is a set. It
// returns -1 if there is none from the index from on.
func findItem(elem typeRef, keys []string, item any, in []any, from int) int {
	wanted, isMap := item.(map[string]any)
	for i := from; i < len(in); i++ {
		live, _ := in[i].(map[string]any)
		same := isMap && len(keys) > 0
		for _, k := range keys {
			_, fallback := elem.field(k)
			same = same && sameScalar(typeRef{}, valueOr(wanted, k, fallback), valueOr(live, k, fallback))
		}
		if same || len(keys) == 0 && sameScalar(elem, item, in[i]) {
			return i
		}
	}
	return -1
}

func valueOr(item map[string]any, key string, fallback any) any {
	if v, ok := item[key]; ok {
		return v
	}
	return fallback
}

func (r *recorder) enterUnstructuredKeys(keys []string, item any) {
	if r == nil {
		return
	}
	m, _ := item.(map[string]any)
	var steps []string
	for _, k := range keys {
		steps = append(steps, k+"="+strings.Trim(string(appendUnstructured(nil, m[k])), `"`))
	}
	r.path = append(r.path, "["+strings.Join(steps, ",")+"]")
}

// sameScalar compares numbers of any Go type by value, and quantities by their amount where the schema has a quantity.
func sameScalar(ref typeRef, want, have any) bool {
	if want == have {
		return true
	}
	if ref.quantity {
		w, wErr := resource.ParseQuantity(scalarText(want))
		h, hErr := resource.ParseQuantity(scalarText(have))
		return wErr == nil && hErr == nil && w.Cmp(h) == 0
	}
	w, wOK := number(want)
	h, hOK := number(have)
	return wOK && hOK && w == h
}

func scalarText(v any) string { return strings.Trim(string(appendUnstructured(nil, v)), `"`) }

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case json.Number:
		f, err := strconv.ParseFloat(v.String(), 64)
		return f, err == nil
	}
	return 0, false
}
