package diff

import (
	"slices"
	"strings"
)

// Path leads to a value inside of another value. Its elements are names of fields, and list items in brackets.
type Path []string

// Field returns the path of a field below p. It does not change p.
func (p Path) Field(name string) Path {
	return append(slices.Clip(p), name)
}

// Item returns the path of a list's item below p. It does not change p.
func (p Path) Item(name string) Path {
	return p.Field("[" + name + "]")
}

// String returns the path as in an API server's messages: spec.containers[0].image.
func (p Path) String() string {
	var text strings.Builder
	for _, step := range p {
		if text.Len() > 0 && !strings.HasPrefix(step, "[") {
			text.WriteByte('.')
		}
		text.WriteString(step)
	}
	return text.String()
}
