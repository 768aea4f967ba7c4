package plan

import (
	"strconv"
	"strings"
)

// FieldPath is a path as the API server writes it in the causes of an error: spec.containers[0].ports[1].name, or
// metadata.labels[example.com/team].
type FieldPath []PathElement

// PathElement is the name of a field, a key of a map, or the index of an item.
type PathElement struct {
	Name    string
	Index   int
	IsIndex bool
}

// ParseFieldPath parses a path. It returns false if the path is not well-formed.
func ParseFieldPath(path string) (FieldPath, bool) {
	var elements FieldPath
	for path != "" {
		if inBrackets, isKey := strings.CutPrefix(path, "["); isKey {
			key, rest, closed := strings.Cut(inBrackets, "]")
			if !closed || len(elements) == 0 {
				return nil, false
			}
			if i, err := strconv.ParseUint(key, 10, 31); err == nil {
				elements = append(elements, PathElement{Index: int(i), IsIndex: true})
			} else {
				elements = append(elements, PathElement{Name: key})
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
		elements = append(elements, PathElement{Name: path[:end]})
		path = path[end:]
	}
	return elements, len(elements) > 0
}

// JsonPointer writes a path by RFC 6901.
func JsonPointer(path FieldPath) string {
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	var pointer strings.Builder
	for _, element := range path {
		pointer.WriteByte('/')
		if element.IsIndex {
			pointer.WriteString(strconv.Itoa(element.Index))
		} else {
			pointer.WriteString(escape.Replace(element.Name))
		}
	}
	return pointer.String()
}
