package reconciletest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/internal/diff"
)

// difference gives what got has and want has not, and the other way round, a line each, by path.
func difference(want, got state) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(union(want, got))) {
		w, wanted := want[name]
		g, found := got[name]
		switch {
		case !found:
			lines = append(lines, fmt.Sprintf("%s: is missing", name))
		case !wanted:
			lines = append(lines, fmt.Sprintf("%s: should not be there", name))
		default:
			lines = append(lines, differ(name+": ", w, g)...)
		}
	}
	return lines
}

func union[V any](a, b map[string]V) map[string]bool {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return all
}

// differ returns a line for each place where two values differ. Each line begins with prefix.
func differ(prefix string, want, got any) []string {
	var lines []string
	for _, found := range diff.Values(want, got, diff.Options{Item: elementName, ExpandMaps: true}) {
		path := found.Path.String()
		if path != "" {
			path += ": "
		}
		lines = append(lines, fmt.Sprintf("%s%swant %s, got %s", prefix, path, short(found.Before), short(found.After)))
	}
	return lines
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// elementName returns what an item of a list is called in paths: its type or name, by which lists in Kubernetes are
// usually keyed, or its index.
func elementName(i int, v any) string {
	if m, ok := v.(map[string]any); ok {
		for _, key := range []string{"type", "name"} {
			if s, ok := m[key].(string); ok {
				return s
			}
		}
	}
	return fmt.Sprint(i)
}

func short(v any) string {
	if _, absent := v.(diff.Absent); absent {
		return "nothing"
	}
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	const enough = 200
	text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(content))
	if len(text) > enough {
		text = strings.ToValidUTF8(text[:enough], "") + "…"
	}
	return text
}

// listDifference shows two lists beside each other.
func listDifference(want, got []string) string {
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			fmt.Fprintf(&b, "\n  + %s", got[i])
		case i >= len(got):
			fmt.Fprintf(&b, "\n  - %s", want[i])
		case want[i] == got[i]:
			fmt.Fprintf(&b, "\n    %s", got[i])
		default:
			fmt.Fprintf(&b, "\n  - %s\n  + %s", want[i], got[i])
		}
	}
	return b.String()
}
