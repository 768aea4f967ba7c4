package compare

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Untyped is the plan of a kind for unstructured objects. Of what they say only nulls are
// dropped: there is no Go type that could have meant something else by a zero.
type Untyped struct{ root typeRef }

// CompileUntyped makes the plan of a kind.
func CompileUntyped(kind schema.GroupVersionKind, schemas Schemas) (*Untyped, error) {
	root, err := schemas.lookup(kind)
	if err != nil {
		return nil, err
	}
	return &Untyped{root: root}, nil
}

func contentOf(obj runtime.Object) map[string]any {
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

// AppendJSON is as [Typed.AppendJSON].
func (*Untyped) AppendJSON(b []byte, obj runtime.Object) ([]byte, error) {
	return appendUntyped(b, contentOf(obj)), nil
}

// AppendApply is as [Typed.AppendApply].
func (*Untyped) AppendApply(b []byte, obj runtime.Object, kind schema.GroupVersionKind, uid string) ([]byte, error) {
	content := contentOf(obj)
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	if metadata, ok := content["metadata"].(map[string]any); ok && uid != "" {
		metadata["uid"] = uid // of a copy
	}
	return appendUntyped(b, content), nil
}

// Covers is as [Typed.Covers].
func (u *Untyped) Covers(want, have runtime.Object) bool {
	return u.covers(nil, want, have)
}

// Differences is as [Typed.Differences].
func (u *Untyped) Differences(want, have runtime.Object) []Difference {
	var t trace
	u.covers(&t, want, have)
	return t.found
}

func (u *Untyped) covers(t *trace, want, have runtime.Object) bool {
	c := untypedComparison{trace: t}
	return c.covers(u.root, contentOf(want), have.(runtime.Unstructured).UnstructuredContent())
}

// untypedComparison walks two values and the schema.
type untypedComparison struct {
	trace  *trace
	atomic bool // inside an atomic value all of it is ours
}

func (c *untypedComparison) covers(ref typeRef, want, have any) bool {
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
	return c.missing(want, have)
}

func (c *untypedComparison) missing(want, have any) bool {
	if c.trace == nil {
		return false
	}
	var live []byte
	if have != nil {
		live = appendUntyped(nil, have)
	}
	return c.trace.missing(appendUntyped(nil, want), live)
}

func (c *untypedComparison) coversMap(ref typeRef, want, have map[string]any) bool {
	outer := c.atomic
	c.atomic = outer || ref.atomicMap()
	defer func() { c.atomic = outer }()
	isStruct := ref.atom.Map != nil && len(ref.atom.Fields) > 0
	if (c.atomic && !isStruct || ref.selector()) && withoutNull(want) != withoutNull(have) {
		return c.missing(want, have)
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
			c.trace.enter(k)
		case ref.atom.Map == nil:
			c.trace.enter(k)
		default:
			value = ref.element()
			c.trace.enterItemKey(k)
		}
		var ok bool
		if live, there := have[k]; there {
			ok = c.covers(value, want[k], live)
		} else {
			ok = c.missing(want[k], nil)
		}
		c.trace.leave()
		if !ok {
			if c.trace == nil {
				return false
			}
			all = false
		}
	}
	return all
}

// withoutNull counts the keys that would be sent.
func withoutNull(m map[string]any) (n int) {
	for _, v := range m {
		if v != nil {
			n++
		}
	}
	return n
}

func (c *untypedComparison) coversList(ref typeRef, want, have []any) bool {
	if c.atomic || !ref.associative() {
		return c.coversAtomicList(ref, want, have)
	}
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
		c.trace.enterUntypedItem(keys, item)
		switch {
		case at < 0:
			all = c.missing(item, nil)
		case len(keys) > 0:
			if at < next && c.trace != nil {
				c.trace.missing([]byte(`"in order"`), []byte(`"out of order"`))
			}
			all = c.covers(ref.element(), item, have[at]) && all
			next = max(next, at+1)
		}
		c.trace.leave()
		if !all && c.trace == nil {
			return false
		}
	}
	return all
}

func (c *untypedComparison) coversAtomicList(ref typeRef, want, have []any) bool {
	if len(want) != len(have) {
		return c.missing(want, have)
	}
	outer := c.atomic
	c.atomic = true
	defer func() { c.atomic = outer }()
	all := true
	for i, item := range want {
		c.trace.enterItem(i)
		ok := c.covers(ref.element(), item, have[i])
		c.trace.leave()
		if !ok {
			if c.trace == nil {
				return false
			}
			all = false
		}
	}
	return all
}

// findItem gives the index of the live item with the same keys, or with the same value in a set.
func findItem(elem typeRef, keys []string, item any, in []any, from int) int {
	wanted, isMap := item.(map[string]any)
	for i := from; i < len(in); i++ {
		live, _ := in[i].(map[string]any)
		same := isMap && len(keys) > 0
		for _, k := range keys {
			_, fallback := elem.field(k)
			same = same && sameScalar(typeRef{}, keyOr(wanted, k, fallback), keyOr(live, k, fallback))
		}
		if same || len(keys) == 0 && sameScalar(elem, item, in[i]) {
			return i
		}
	}
	return -1
}

func keyOr(item map[string]any, key string, fallback any) any {
	if v, ok := item[key]; ok {
		return v
	}
	return fallback
}

func (t *trace) enterUntypedItem(keys []string, item any) {
	if t == nil {
		return
	}
	m, _ := item.(map[string]any)
	var steps []string
	for _, k := range keys {
		steps = append(steps, k+"="+strings.Trim(string(appendUntyped(nil, m[k])), `"`))
	}
	t.path = append(t.path, "["+strings.Join(steps, ",")+"]")
}

// sameScalar compares by value: numbers of any type, and quantities where the schema says that
// it is one.
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

func scalarText(v any) string { return strings.Trim(string(appendUntyped(nil, v)), `"`) }

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
