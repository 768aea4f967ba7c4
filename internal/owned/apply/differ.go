package apply

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/reconcile/preview"
)

// differ collects the fields that an apply would change.
type differ struct {
	hidden bool // values are not shown
	found  []preview.Difference
}

// addLocal adds the differences that this module finds by itself, without the API server's answer.
func (d *differ) addLocal(desired *owned.Desired, live client.Object) {
	for _, local := range desired.Kind.Comparer.Differences(desired.Object, live) {
		d.add(local.Path, decoded(local.Have), decoded(local.Want))
	}
}

func (d *differ) addChanged(before, after any) {
	for _, found := range diff.Values(before, after, diff.Options{Field: fieldName}) {
		d.add(found.Path.String(), found.Before, found.After)
	}
}

// fieldName returns how a path names a field. If the name has dots or slashes, as keys of labels and annotations have, it is in brackets.
func fieldName(name string) string {
	if strings.ContainsAny(name, "./") {
		return "[" + name + "]"
	}
	return name
}

// add adds a difference, unless there is already one for the path. Null is the same as absent: an apply sends neither.
func (d *differ) add(path string, before, after any) {
	difference := preview.Difference{Path: path, Have: d.show(path, before), Want: d.show(path, after)}
	if difference.Have == "" && difference.Want == "" {
		return
	}
	if !slices.ContainsFunc(d.found, func(f preview.Difference) bool { return f.Path == path }) {
		d.found = append(d.found, difference)
	}
}

func (d *differ) show(path string, v any) string {
	_, absent := v.(diff.Absent)
	switch {
	case v == nil, absent:
		return ""
	case d.hidden || holdsEnvironment(path, v):
		return "(hidden)"
	}
	return encoded(v)
}

// environment matches a path through a field that holds environment variables, as a list or a map. The name of such a field is env,
// extraEnv, envVars, environment or similar.
var environment = regexp.MustCompile(`(^|\.)([a-zA-Z]*E|[eE])nv(s|Vars?|ironment|ironmentVariables)?([.[]|$)`)

// holdsEnvironment reports whether a value is a part of an environment variable, or contains environment variables.
func holdsEnvironment(path string, v any) bool {
	if environment.MatchString(path) {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, e := range v {
			if environment.MatchString(name) || holdsEnvironment("", e) {
				return true
			}
		}
		return false
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return holdsEnvironment("", e) })
	}
	return false
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return "(not JSON)"
	}
	return string(b)
}

// decoded returns the value of a JSON text. If the text is empty or not JSON, it returns nil.
func decoded(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return nil
	}
	return v
}
