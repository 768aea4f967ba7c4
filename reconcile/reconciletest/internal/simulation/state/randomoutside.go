package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opblocks/opblocks/internal/diff"
)

// minRandom is the smallest length of a random name outside of the cluster. Shorter names are often numbers.
const minRandom = 4

// namesOutside returns the names in the state outside of the cluster, by path, each with its content. Names are the keys of a map, the
// keys of the items of a list, and the texts in a list. The content of a text is its index in the list.
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

// addOutside adds the paths outside of the cluster whose names are random. Names are random if they differ between two runs, and if both
// runs have the same number of them.
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

// namesOnlyIn returns the names that only the first map has, sorted by their content.
func namesOnlyIn(one, other map[string]any) []named {
	var only []named
	for name, value := range one {
		if _, both := other[name]; !both {
			content, _ := json.Marshal(value) // cannot fail: it was made from JSON
			only = append(only, named{name, strings.ReplaceAll(string(content), name, "")})
		}
	}
	slices.SortFunc(only, named.compare)
	return only
}

// alignOutside returns the new name for each random name outside of the cluster.
func (n *RandomNames) alignOutside(got, want State) map[string]string {
	gots, wants, names := namesOutside(got), namesOutside(want), map[string]string{}
	for path := range n.outside {
		maps.Copy(names, matched(namesOnlyIn(gots[path], wants[path]), namesOnlyIn(wants[path], gots[path]), ""))
	}
	return names
}

// renamed returns a JSON value in which the keys of maps are replaced by their new names.
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
