package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// schema has the parts of a structural schema that the command reads.
type schema struct {
	Type        string
	Format      string
	Pattern     string
	Properties  map[string]*schema
	Required    []string
	Enum        []any
	Default     any
	Items       *schema
	MinItems    int
	MinLength   int
	Minimum     *float64
	Maximum     *float64
	IntOrString bool  `json:"x-kubernetes-int-or-string"`
	Validations []any `json:"x-kubernetes-validations"`
}

// minimal returns a value that has only the required fields without a default. It always has a spec.
func (s *schema) minimal() any {
	switch {
	case s == nil:
		return map[string]any{}
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.IntOrString, s.Type == "integer", s.Type == "number":
		if s.Minimum != nil {
			return math.Ceil(*s.Minimum)
		}
		return 1.0
	case s.Type == "string" && s.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	case s.Type == "string":
		return "example" + strings.Repeat("x", max(0, s.MinLength-len("example")))
	case s.Type == "boolean":
		return false
	case s.Type == "array":
		items := make([]any, s.MinItems)
		for i := range items {
			items[i] = s.Items.minimal()
		}
		return items
	}
	obj := map[string]any{}
	for name, property := range s.Properties {
		if property != nil && property.Default == nil && slices.Contains(s.Required, name) || name == "spec" {
			obj[name] = property.minimal()
		}
	}
	return obj
}

// change is a field of a sample, and another valid value for it.
type change struct {
	path  []string
	value string // Go code
}

// findChange returns a change of the sample's spec to another value that the schema allows. It changes a number, or else a string. It
// returns nil if the schema allows none.
func (s *schema) findChange(obj map[string]any) *change {
	if s == nil {
		return nil
	}
	spec, _ := obj["spec"].(map[string]any)
	for _, find := range []func(any, *schema) string{otherNumber, otherString} {
		if found := s.Properties["spec"].find(spec, []string{"spec"}, find); found != nil {
			return found
		}
	}
	return nil
}

func (s *schema) find(obj map[string]any, at []string, other func(any, *schema) string) *change {
	if s == nil || len(s.Validations) > 0 {
		return nil // such as a spec that may not change
	}
	names := slices.Sorted(maps.Keys(obj))
	for _, name := range names {
		field := s.Properties[name]
		if field == nil || len(field.Validations) > 0 {
			continue
		}
		if value := other(obj[name], field); value != "" {
			return &change{append(slices.Clone(at), name), value}
		}
	}
	for _, name := range names {
		if below, ok := obj[name].(map[string]any); ok {
			if found := s.Properties[name].find(below, append(slices.Clone(at), name), other); found != nil {
				return found
			}
		}
	}
	return nil
}

func otherNumber(value any, s *schema) string {
	n, ok := value.(float64)
	switch {
	case !ok || s.Type != "integer" || len(s.Enum) > 0:
		return ""
	case s.Maximum == nil || n+1 <= *s.Maximum:
		return fmt.Sprintf("int64(%.0f)", n+1)
	case s.Minimum == nil || n-1 >= *s.Minimum:
		return fmt.Sprintf("int64(%.0f)", n-1)
	}
	return ""
}

func otherString(value any, s *schema) string {
	text, ok := value.(string)
	if !ok || s.Type != "string" || len(s.Enum) > 0 || s.Pattern != "" || s.Format != "" || s.IntOrString {
		return ""
	}
	return strconv.Quote(text + "-changed")
}
