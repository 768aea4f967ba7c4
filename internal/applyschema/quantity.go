package applyschema

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opblocks/opblocks/internal/diff"
)

const (
	maxQuantityLength   = 64
	maxQuantityExponent = 30 // a quantity of 2^63-1 with the suffix E has 38 digits
)

// HugeQuantity returns the path of a quantity that is too long or has too large an exponent, such as 1e999999999. If there is none, the
// path is empty. At each write of such a quantity, the API server would compute for half a minute and use gigabytes of memory.
func (r Schema) HugeQuantity(tree any) string { return r.hugeQuantity(nil, tree).String() }

func (r Schema) hugeQuantity(at diff.Path, tree any) diff.Path {
	switch value := tree.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(value)) {
			below := at.Field(k)
			if r.IsMap() && !r.HasFields() {
				below = at.Item(k)
			}
			if found := r.Child(k).hugeQuantity(below, value[k]); found != nil {
				return found
			}
		}
	case []any:
		for i, item := range value {
			name := strconv.Itoa(i)
			if len(r.Keys()) > 0 {
				name = r.ItemName(item, true)
			}
			if found := r.Element().hugeQuantity(at.Item(name), item); found != nil {
				return found
			}
		}
	case string:
		if r.IsQuantity() && isHugeQuantity(value) {
			return at
		}
	}
	return nil
}

func isHugeQuantity(text string) bool {
	if len(text) > maxQuantityLength {
		return true
	}
	i := strings.IndexAny(text, "eE")
	if i < 0 {
		return false
	}
	exponent, err := strconv.Atoi(text[i+1:])
	return errors.Is(err, strconv.ErrRange) || err == nil && (exponent > maxQuantityExponent || exponent < -maxQuantityExponent)
}
