package reconciletest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
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
			lines = append(lines, differ(name+": ", "", w, g)...)
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

// absent stands for a field that is not there.
type absent struct{}

func differ(prefix, path string, want, got any) []string {
	if reflect.DeepEqual(want, got) {
		return nil
	}
	if w, ok := fields(want, got); ok {
		if g, ok := fields(got, want); ok {
			var lines []string
			for _, key := range slices.Sorted(maps.Keys(union(w, g))) {
				lines = append(lines, differ(prefix, join(path, key), field(w, key), field(g, key))...)
			}
			return lines
		}
	}
	if w, ok := want.([]any); ok {
		if g, ok := got.([]any); ok && len(w) == len(g) {
			var lines []string
			for i := range w {
				lines = append(lines, differ(prefix, fmt.Sprintf("%s[%s]", path, element(w[i], i)), w[i], g[i])...)
			}
			return lines
		}
	}
	if path != "" {
		path += ": "
	}
	return []string{fmt.Sprintf("%s%swant %s, got %s", prefix, path, short(want), short(got))}
}

// fields gives a map; where there is nothing beside a map that holds something, that is an empty one.
func fields(v, beside any) (map[string]any, bool) {
	if _, none := v.(absent); none {
		m, ok := beside.(map[string]any)
		return nil, ok && len(m) > 0
	}
	m, ok := v.(map[string]any)
	return m, ok
}

func field(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return absent{}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// element names one of a list, by what lists in Kubernetes are usually keyed by.
func element(v any, i int) string {
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
	if _, none := v.(absent); none {
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
