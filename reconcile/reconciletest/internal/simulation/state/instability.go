package state

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/opblocks/opblocks/internal/diff"
)

// reordered returns a line for each path at which two values have the same items in another order: the items of a list, or the parts of a
// text.
func reordered(before, after any) []string {
	var lines []string
	walkBoth(nil, before, after, func(path diff.Path, a, b any) (found bool) {
		one, other := itemsOf(a), itemsOf(b)
		if len(one) < 2 || slices.Equal(one, other) || !slices.Equal(slices.Sorted(slices.Values(one)), slices.Sorted(slices.Values(other))) {
			return false
		}
		lines = append(lines, path.String()+" has the same items in another order: if they come from a Go map, whose order is random, sort them")
		return true
	})
	return lines
}

// instabilities returns a line for each value that should be the same before and after and is not, if the two values show the reason: the
// order of items, the time, or a random value.
func instabilities(before, after any) []string {
	lines := reordered(before, after)
	if len(lines) > 0 {
		return lines // another value may differ only because it is a hash of this one
	}
	walkBoth(nil, before, after, func(path diff.Path, a, b any) bool {
		one, isText := a.(string)
		other, areTexts := b.(string)
		switch {
		case !isText || !areTexts || one == other:
			return false
		case isTime(one) && isTime(other):
			lines = append(lines, path.String()+" is the time of the pass: change it only together with something else")
		case isOpaque(one) && isOpaque(other) && differMostly(one, other):
			lines = append(lines, path.String()+" is another value in each pass: it may be random, or a hash of a Go map, whose order is random")
		}
		return true
	})
	return lines
}

// walkBoth calls visit for each path at which both values exist and differ. If visit returns true, walkBoth does not visit the paths below
// this one.
func walkBoth(path diff.Path, before, after any, visit func(path diff.Path, before, after any) (stop bool)) {
	if reflect.DeepEqual(before, after) || visit(path, before, after) {
		return
	}
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(b)) {
			if other, found := a[key]; found {
				walkBoth(path.Field(key), b[key], other, visit)
			}
		}
	case []any:
		if a, ok := after.([]any); ok && len(a) == len(b) {
			for i := range b {
				walkBoth(path.Item(itemName(i, b[i])), b[i], a[i], visit)
			}
		}
	}
}

// itemsOf returns the items of a list, each as JSON, or the parts of a text that commas, semicolons or white space separate.
func itemsOf(v any) []string {
	switch v := v.(type) {
	case []any:
		items := make([]string, len(v))
		for i := range v {
			content, err := json.Marshal(v[i])
			if err != nil {
				return nil
			}
			items[i] = string(content)
		}
		return items
	case string:
		return strings.FieldsFunc(v, func(c rune) bool { return strings.ContainsRune(",; \n\t&|", c) })
	}
	return nil
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// minOpaque is the smallest length of a text that can count as a hash or a random value.
const minOpaque = 8

// isOpaque reports whether a text looks like a hash or a random value: one word of letters and digits.
func isOpaque(text string) bool {
	if len(text) < minOpaque {
		return false
	}
	digits, letters := 0, 0
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters++
		case !strings.ContainsRune("+/=_-", c):
			return false
		}
	}
	return digits > 0 && letters > 0 || digits == len(text)
}

// differMostly reports whether two texts have the same length, and differ in most of their bytes. Two values of a counter do not differ so
// much.
func differMostly(one, other string) bool {
	if len(one) != len(other) {
		return false
	}
	differ := 0
	for i := range len(one) {
		if one[i] != other[i] {
			differ++
		}
	}
	return differ > len(one)/2
}

// Describe returns the places as text, sorted: "Secret default/web: data.password".
func (p Places) Describe() []string {
	var all []string
	for _, object := range slices.Sorted(maps.Keys(p)) {
		for _, path := range p[object] {
			c := Change{Object: object, Path: path}
			all = append(all, c.place())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
