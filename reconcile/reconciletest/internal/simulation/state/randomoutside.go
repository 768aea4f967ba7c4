package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/internal/diff"
)

// minRandom is the smallest length of a name outside of the cluster that is taken for a random one. Shorter ones are often numbers.
const minRandom = 4

// namesOutside returns what has names outside of the cluster: by path, and then by name. The names are the keys of a map, the keys that the
// items of a list have, and the texts of a list. The content of a text is its index in the list.
func namesOutside(s State) map[string]map[string]any {
	all := map[string]map[string]any{}
	walk(nil, s[External], func(path diff.Path, v any) bool {
		switch v := v.(type) {
		case map[string]any:
			all[path.String()] = v
		case []any:
			names := map[string]any{}
			for i, item := range v {
				if text, isText := item.(string); isText {
					names[text] = fmt.Sprintf("%06d", i)
				} else if key, found := itemKey(item); found {
					names[key] = item
				}
			}
			all[path.String()] = names
		}
		return true
	})
	return all
}

// addOutside adds the random names outside of the cluster: names at the same path that differ between two runs, if both runs have as many.
func (n *RandomNames) addOutside(one, other State) {
	others := namesOutside(other)
	for path, names := range namesOutside(one) {
		only := namesOnlyIn(names, others[path])
		short := slices.ContainsFunc(only, func(of named) bool { return len(of.name) < minRandom })
		if len(only) > 0 && !short && len(only) == len(namesOnlyIn(others[path], names)) {
			n.outside[path] = true
		}
	}
}

// namesOnlyIn returns the names that only the first of two has, sorted by their content.
func namesOnlyIn(one, other map[string]any) []named {
	var only []named
	for name, value := range one {
		if _, both := other[name]; !both {
			content, _ := json.Marshal(value) // it was made of JSON
			only = append(only, named{name, strings.ReplaceAll(string(content), name, "")})
		}
	}
	slices.SortFunc(only, named.compare)
	return only
}

// alignOutside returns the names outside of the cluster to replace in a state, and what replaces them.
func (n *RandomNames) alignOutside(got, want State) map[string]string {
	gots, wants, names := namesOutside(got), namesOutside(want), map[string]string{}
	for path := range n.outside {
		maps.Copy(names, matched(namesOnlyIn(gots[path], wants[path]), namesOnlyIn(wants[path], gots[path]), ""))
	}
	return names
}

// renamed returns a JSON value with other keys in its maps.
func renamed(v any, names map[string]string) any {
	switch v := v.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, e := range v {
			if name, found := names[key]; found {
				key = name
			}
			made[key] = renamed(e, names)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, e := range v {
			made[i] = renamed(e, names)
		}
		return made
	}
	return v
}
