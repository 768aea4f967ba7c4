package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/diff"
)

// RandomNames are names of objects to which the operator itself appends something random, such as web-x7k2p. They differ between two runs.
// The zero value is empty.
type RandomNames struct {
	prefixes map[string]bool // keys of a State without the random end, such as "Job default/web-"
	stable   map[string]bool // keys that two runs have in common, so their names are not random
	outside  map[string]bool // paths outside of the cluster at which names are random as a whole
}

// Add compares two runs without faults at the same moment, and adds the names that are random. A name is random if only the part after the
// last dash differs, and if both runs have the same number of such names.
func (n *RandomNames) Add(one, other State) {
	if n.prefixes == nil {
		n.prefixes, n.stable, n.outside = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	for key := range one {
		if _, both := other[key]; both {
			n.stable[key] = true
		}
	}
	ones, others := onlyIn(one, other), onlyIn(other, one)
	for prefix, names := range ones {
		if len(names) == len(others[prefix]) {
			n.prefixes[prefix] = true
		}
	}
	n.addOutside(one, other)
}

// onlyIn returns the keys that only the first state has, by their prefix.
func onlyIn(one, other State) map[string][]string {
	only := map[string][]string{}
	for key := range one {
		prefix := prefixOfName(key)
		if _, both := other[key]; !both && prefix != "" {
			only[prefix] = append(only[prefix], key)
		}
	}
	return only
}

// prefixOfName returns a key of a state up to the last dash of the object's name, "" if there is none.
func prefixOfName(key string) string {
	at := strings.LastIndex(key, "-")
	if at < 0 || strings.ContainsAny(key[at:], "/ ") {
		return ""
	}
	return key[:at+1]
}

// Simplify returns an object's name with a star in place of the random part. If no part is random, it returns the name.
func (n *RandomNames) Simplify(kind string, object client.ObjectKey) string {
	key := kind + " " + NameOf(object)
	if prefix := prefixOfName(key); n.prefixes[prefix] && !n.stable[key] {
		return object.Name[:strings.LastIndex(object.Name, "-")+1] + "*"
	}
	return object.Name
}

// Align returns got with its random names replaced by the random names of want. If want has fewer names, the others are numbered, so that
// equal results have equal names.
func (n *RandomNames) Align(got, want State) State {
	if len(n.prefixes)+len(n.outside) == 0 {
		return got
	}
	names := n.alignOutside(got, want)
	missing, surplus := onlyIn(want, got), onlyIn(got, want)
	for prefix := range n.prefixes {
		maps.Copy(names, matched(byContent(surplus[prefix], got), byContent(missing[prefix], want), nameIn(prefix)))
	}
	if len(names) == 0 {
		return got
	}
	var pairs []string
	for from, to := range names {
		pairs = append(pairs, from, to)
	}
	rename := strings.NewReplacer(longestFirst(pairs)...).Replace
	aligned := make(State, len(got))
	for key, content := range got {
		aligned[rename(key)] = replaced(content, rename)
	}
	if outside, found := aligned[External]; found {
		aligned[External] = renamed(outside, names)
	}
	return aligned
}

// named is the name of an object, and its content without the name.
type named struct{ name, content string }

// byContent returns the objects with these keys, sorted by their content.
func byContent(keys []string, s State) []named {
	objects := make([]named, len(keys))
	for i, key := range keys {
		content, _ := json.Marshal(s[key]) // cannot fail: it was made from JSON
		objects[i] = named{nameIn(key), strings.ReplaceAll(string(content), nameIn(key), "")}
	}
	slices.SortFunc(objects, named.compare)
	return objects
}

func (n named) compare(other named) int {
	return cmp.Or(strings.Compare(n.content, other.content), strings.Compare(n.name, other.name))
}

// matched returns a new name for each name in from. It is the name of an object in to with the same content, or else of any object in to
// that is left. If none is left, it is the prefix with a number.
func matched(from, to []named, prefix string) map[string]string {
	names := map[string]string{}
	to = slices.Clone(to)
	for _, same := range []bool{true, false} {
		for _, object := range from {
			i := slices.IndexFunc(to, func(other named) bool { return !same || other.content == object.content })
			if _, done := names[object.name]; done || i < 0 {
				continue
			}
			names[object.name] = to[i].name
			to = slices.Delete(to, i, i+1)
		}
	}
	for _, object := range from {
		if _, done := names[object.name]; !done {
			names[object.name] = fmt.Sprintf("%s<random %d>", prefix, len(from)-len(names))
		}
	}
	return names
}

// nameIn returns the object's name in a key of a state.
func nameIn(key string) string { return key[strings.LastIndexAny(key, "/ ")+1:] }

// Describe returns the names as text, sorted: "Job default/web-*", "external: users.*".
func (n *RandomNames) Describe() []string {
	var all []string
	for prefix := range n.prefixes {
		all = append(all, prefix+"*")
	}
	for path := range n.outside {
		c := Change{Object: External, Path: joined(path, diff.Path{"*"})}
		all = append(all, c.place())
	}
	slices.Sort(all)
	return all
}
