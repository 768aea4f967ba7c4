package overlay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// maxErrors is the largest number of errors that are returned, because a condition shows them.
const maxErrors = 10

// Validate checks the patch without a base: that it is JSON, its size, that all fields exist and have values of the right
// type, that items of lists have their keys, and that each directive is where it has an effect. It returns at most ten
// errors, whose paths begin with path. They contain no values of the patch.
//
// Call it in a webhook. [PodTemplate.Apply] makes the same checks, and the checks that need the base.
func (p *PodTemplate) Validate(path *field.Path) field.ErrorList {
	if p.isEmpty() {
		return nil
	}
	_, invalid := p.parse(path)
	return invalid
}

// parse returns the parsed patch, and the errors that Validate returns.
func (p *PodTemplate) parse(path *field.Path) (patch map[string]any, invalid field.ErrorList) {
	if len(p.Raw) > MaxSize {
		return nil, field.ErrorList{field.TooLong(path, "", MaxSize)}
	}
	if !bytes.HasPrefix(bytes.TrimSpace(p.Raw), []byte("{")) {
		return nil, field.ErrorList{invalidValue(path, "must be a JSON object with the fields metadata and spec")}
	}
	duplicates, err := kjson.UnmarshalStrict(p.Raw, &patch)
	if err != nil {
		return nil, field.ErrorList{invalidValue(path, "must be JSON: "+err.Error())}
	}
	c := &checker{}
	for _, err := range duplicates {
		c.add(invalidValue(path, shorten(err.Error())+": keep one of the two"))
	}
	if _, found := patch[patchDirective]; found {
		c.add(field.Forbidden(path.Child(patchDirective), "the pod template cannot be replaced or deleted as a whole: write what is to be changed"))
	} else {
		c.object(path, patch, podTemplateType, false)
	}
	return patch, c.errors
}

// checker checks a patch against Go types, and collects the errors. The API server's library panics on some values that do
// not have the expected type.
type checker struct {
	errors field.ErrorList
	found  int // the number of all errors, including those that are not returned
}

func (c *checker) add(err *field.Error) {
	c.found++
	if len(c.errors) < maxErrors {
		c.errors = append(c.errors, err)
	}
}

// object checks the members of a JSON object. inert is true inside a list that is replaced as a whole, where directives
// have no effect.
func (c *checker) object(path *field.Path, value map[string]any, t reflect.Type, inert bool) {
	for _, name := range slices.Sorted(maps.Keys(value)) {
		at := path.Child(shorten(name))
		if t.Kind() == reflect.Map {
			at = path.Key(shorten(name))
		}
		m, found := memberOf(t, name)
		switch {
		case strings.HasPrefix(name, directivePrefix) && inert:
			c.add(field.Forbidden(at, "has no effect here, because the list around it is replaced as a whole: write the list as it is to be"))
		case strings.HasPrefix(name, directivePrefix):
			c.directive(at, name, value, t)
		case !found:
			c.add(invalidValue(at, unknownField(t, name)))
		case value[name] != nil: // null deletes
			c.value(at, value[name], m, inert)
		}
	}
}

func (c *checker) value(path *field.Path, value any, m member, inert bool) {
	if isScalar(m.goType) {
		if mismatch := checkScalar(value, m.goType); mismatch != "" {
			c.add(invalidValue(path, mismatch))
		}
		return
	}
	switch value := value.(type) {
	case map[string]any:
		if m.goType.Kind() != reflect.Slice {
			c.object(path, value, m.goType, inert)
			return
		}
	case []any:
		if m.goType.Kind() == reflect.Slice {
			c.items(path, value, m, inert)
			return
		}
	}
	want := "an object"
	if m.goType.Kind() == reflect.Slice {
		want = "a list"
	}
	c.add(invalidValue(path, "must be "+want))
}

// items checks a list.
func (c *checker) items(path *field.Path, items []any, list member, inert bool) {
	merged := list.mergeKey != "" && !inert
	replaced := merged && slices.ContainsFunc(items, isReplaceMarker)
	keys := map[any]bool{}
	for i, item := range items {
		at := path.Index(i)
		switch object, isObject := item.(map[string]any); {
		case item == nil:
			c.add(invalidValue(at, "must not be null: leave the item out"))
		case !isObject || !merged:
			c.value(at, item, member{goType: withoutPointer(list.goType.Elem())}, true)
		case isReplaceMarker(item):
			if len(object) > 1 {
				c.add(field.Forbidden(at.Child(patchDirective), "replaces the whole list and discards what stands beside it: let \"$patch: replace\" be an item of its own"))
			}
		default:
			c.value(at, item, member{goType: list.goType.Elem()}, false)
			c.key(at, object, list, replaced, keys)
		}
	}
}

// key checks the key of an item of a list that is merged, and adds it to earlier, the keys of the items before it.
func (c *checker) key(path *field.Path, item map[string]any, list member, replaced bool, earlier map[any]bool) {
	key := item[list.mergeKey]
	switch {
	case key == nil:
		c.add(field.Required(path.Child(list.mergeKey), "the items of this list are merged by it"))
	case !isComparable(key): // the check of its type has reported it
	case item[patchDirective] == remove:
	case isTwice(item, list, earlier) && !replaced:
		c.add(invalidValue(path.Child(list.mergeKey), "stands twice in the list, and the API server would merge the two items: "+
			"merge them, or give the whole list, after an item \"$patch: replace\""))
	default:
		earlier[keyIn(item, list)], earlier[key] = true, true
	}
}

// isTwice reports whether an earlier item has the same key. If an item lacks the second field of its key, it may be the
// same item as any with its first field.
func isTwice(item map[string]any, list member, earlier map[any]bool) bool {
	key := keyIn(item, list)
	both, isComposite := key.(itemKey)
	if !isComposite || secondKeys[list.goType.Elem()].whenUnset != "" {
		return earlier[key]
	}
	return earlier[key] || earlier[itemKey{both.first, ""}] || both.second == "" && earlier[both.first]
}

// checkScalar returns what is wrong with a scalar value for the type t, or "". The text does not contain the value.
func checkScalar(value any, t reflect.Type) (mismatch string) {
	target := reflect.New(t)
	if custom, ok := reflect.TypeAssert[json.Unmarshaler](target); ok {
		if isTooLong(value, t) {
			return "must be a shorter quantity, such as 500m or 1Gi"
		}
		b, err := json.Marshal(value)
		if err == nil {
			err = custom.UnmarshalJSON(b)
		}
		switch {
		case err == nil:
			return ""
		case t == quantityType:
			return "must be a quantity, such as 500m or 1Gi"
		case t == intOrStringType:
			return "must be an integer or a string"
		}
		return "is malformed"
	}
	switch t.Kind() {
	case reflect.String:
		if _, ok := value.(string); !ok {
			return "must be a string: put it in quotes if it looks like a number or a boolean"
		}
	case reflect.Bool:
		if _, ok := value.(bool); !ok {
			return "must be true or false"
		}
	default:
		if number, ok := value.(int64); !ok || target.Elem().OverflowInt(number) {
			return fmt.Sprintf("must be an integer of at most %d bits", t.Bits())
		}
	}
	return ""
}

// isTooLong reports whether parsing a quantity would take long: resource.ParseQuantity takes hours for 1e-2000000000.
func isTooLong(value any, t reflect.Type) bool {
	text, ok := value.(string)
	if !ok || t != quantityType {
		return false
	}
	_, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	return len(text) > 50 || len(exponent) > len("-99")
}

// unknownField returns a message for a field that a struct does not have, with a hint if a similar field exists.
func unknownField(t reflect.Type, name string) string {
	known := fieldsOf(t)
	for other := range known {
		if strings.EqualFold(other, name) {
			return "unknown field: write " + other
		}
	}
	if t == podTemplateType {
		for _, below := range []string{"spec", "metadata"} {
			if _, found := memberOf(known[below].goType, name); found {
				return "unknown field: it belongs below " + below
			}
		}
	}
	return "unknown field"
}

// invalidValue returns an error that does not contain the value.
func invalidValue(path *field.Path, detail string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, detail)
}

// shorten shortens a text of the user, so that a message stays readable.
func shorten(text string) string {
	const limit = 100
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
