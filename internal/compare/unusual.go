package compare

import (
	"reflect"
	"slices"
	"strings"
)

// unusual tells what in a struct encoding/json reads by rules that no API type needs; empty for
// nothing. Such a struct is left to encoding/json.
func unusual(t reflect.Type) string {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case slices.Contains(strings.Split(options, ","), "string"):
			return "field " + f.Name + " has the option string"
		case !f.Anonymous || name != "":
		case f.Type.Kind() == reflect.Pointer:
			return "field " + f.Name + " is an embedded pointer"
		case f.Type.Kind() == reflect.Struct:
			if why := unusual(f.Type); why != "" {
				return why
			}
		}
	}
	return ""
}
