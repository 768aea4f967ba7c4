package plan

import (
	"strconv"
	"strings"
)

// fieldPath is a path as the API server writes it in the causes of an error: spec.containers[0].ports[1].name, or
// metadata.labels[example.com/team].
type fieldPath []pathElement

// pathElement is the name of a field, a key of a map, or the index of an item.
type pathElement struct {
	name    string
	index   int
	isIndex bool
}

// parseFieldPath parses a path. It returns false if the path is not well-formed.
func parseFieldPath(path string) (fieldPath, bool) {
	var elements fieldPath
	for path != "" {
		if inBrackets, isKey := strings.CutPrefix(path, "["); isKey {
			key, rest, closed := strings.Cut(inBrackets, "]")
			if !closed || len(elements) == 0 {
				return nil, false
			}
			if i, err := strconv.ParseUint(key, 10, 31); err == nil {
				elements = append(elements, pathElement{index: int(i), isIndex: true})
			} else {
				elements = append(elements, pathElement{name: key})
			}
			path = rest
			continue
		}
		if len(elements) > 0 {
			rest, dotted := strings.CutPrefix(path, ".")
			if !dotted {
				return nil, false
			}
			path = rest
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			end = len(path)
		}
		if end == 0 {
			return nil, false
		}
		elements = append(elements, pathElement{name: path[:end]})
		path = path[end:]
	}
	return elements, len(elements) > 0
}

// jsonPointer writes a path by RFC 6901.
func jsonPointer(path fieldPath) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, element := range path {
		pointer.WriteByte('/')
		if element.isIndex {
			pointer.WriteString(strconv.Itoa(element.index))
		} else {
			pointer.WriteString(escape.Replace(element.name))
		}
	}
	return pointer.String()
}
