package overlay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/opblocks/opblocks/ownedresources/overlay"
)

// quantityDeleted matches a null that removes a quantity. If such a null is in a new item, the API server's library
// turns it into the quantity 0.
var quantityDeleted = regexp.MustCompile(`"(cpu|memory)":null`)

var patches = flag.Int("patches", 3000, "how many random patches TestRandomPatches applies")

// TestRandomPatches applies random patches to random bases. Each accepted patch gives the same bytes each time, changes
// nothing when it is applied again, and does not change the base. Where the API server's library handles the patch
// correctly, its result is the same, except for the differences that docs/overlay.md lists.
func TestRandomPatches(t *testing.T) {
	accepted, compared := 0, 0
	for seed := range uint64(*patches) {
		r := rand.New(rand.NewPCG(seed, 0))
		given := randomBase(t, r)
		patch, readds := randomPatch(t, r)
		first, err := patch.Apply(given, nil)
		if _, ok := errors.AsType[*overlay.InvalidError](err); ok {
			continue
		}
		describe := fmt.Sprintf("seed %d, patch %s, base %s", seed, patch.Raw, encoded(t, given))
		require.NoError(t, err, describe)
		accepted++
		unchanged := *given.DeepCopy()
		for range 4 {
			again, err := patch.Apply(given, nil)
			require.NoError(t, err, describe)
			require.Equal(t, encoded(t, first), encoded(t, again), describe)
		}
		require.True(t, equality.Semantic.DeepEqual(unchanged, given), describe)

		twice, err := patch.Apply(first, nil)
		require.NoError(t, err, describe)
		// If an item is deleted and added again, it may get another index in the list, as with kubectl patch.
		if diff := cmp.Diff(asJSON(t, first), asJSON(t, twice)); diff != "" && !readds {
			t.Errorf("%s\napplied again, -once +twice:\n%s", describe, diff)
		}
		if strings.Contains(string(patch.Raw), `"$patch":"replace"`) || quantityDeleted.Match(patch.Raw) {
			continue
		}
		if strings.Contains(encoded(t, given), "UDP") && strings.Contains(string(patch.Raw), `"$patch":"delete"`) { // the library would delete the ports of both protocols
			continue
		}
		b, err := strategicpatch.StrategicMergePatch([]byte(encoded(t, given)), patch.Raw, corev1.PodTemplateSpec{})
		if err != nil || bytes.Contains(b, []byte(`"$`)) {
			continue
		}
		var want corev1.PodTemplateSpec
		require.NoError(t, json.Unmarshal(b, &want), describe)
		for _, volume := range want.Spec.Volumes { // the library keeps both sources of the volume
			if i := slices.IndexFunc(first.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name }); i >= 0 && volume.EmptyDir != nil && volume.HostPath != nil {
				want.Spec.Volumes[slices.IndexFunc(want.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume.Name })] = first.Spec.Volumes[i]
			}
		}
		if diff := cmp.Diff(sorted(asJSON(t, want)), sorted(asJSON(t, first))); diff != "" {
			t.Errorf("%s\n-library +got:\n%s", describe, diff)
		}
		compared++
	}
	t.Logf("%d accepted, %d compared with the library", accepted, compared)
	require.Greater(t, accepted, *patches/2)
	require.Greater(t, compared, *patches/3)
}

// sorted sorts the lists whose items have keys, because the library orders them differently.
func sorted(tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			tree[name] = sorted(value)
		}
	case []any:
		keyOf := func(item any) string {
			object, _ := item.(map[string]any)
			return fmt.Sprint(object["containerPort"], object["protocol"], object["ip"], object["name"])
		}
		for i := range tree {
			tree[i] = sorted(tree[i])
		}
		if _, isObject := slices.Concat(tree, []any{nil})[0].(map[string]any); isObject {
			slices.SortStableFunc(tree, func(a, b any) int { return strings.Compare(keyOf(a), keyOf(b)) })
		}
	}
	return tree
}

func encoded(t testing.TB, p corev1.PodTemplateSpec) string {
	t.Helper()
	b, err := json.Marshal(p)
	require.NoError(t, err)
	return string(b)
}

func randomBase(t testing.TB, r *rand.Rand) (p corev1.PodTemplateSpec) {
	t.Helper()
	g := generator{r: r}
	b, err := json.Marshal(g.template())
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &p))
	for i := range p.Spec.Containers {
		if ports := &p.Spec.Containers[i].Ports; len(*ports) > 0 && r.IntN(2) == 0 {
			*ports = append(*ports, corev1.ContainerPort{ContainerPort: (*ports)[0].ContainerPort, Protocol: corev1.ProtocolUDP})
		}
	}
	if len(p.Spec.Containers) == 0 {
		p.Spec.Containers = []corev1.Container{{Name: "a"}}
	}
	return p
}

func randomPatch(t testing.TB, r *rand.Rand) (patch *overlay.PodTemplate, readds bool) {
	t.Helper()
	g := generator{r: r, directives: r.IntN(3) > 0, nulls: true}
	b, err := json.Marshal(g.template())
	require.NoError(t, err)
	return rawPatch(string(b)), g.readds
}

// generator generates fields of a pod template that are merged in all the different ways. It uses few names, so that
// many items of the patch have the key of an item of the base.
type generator struct {
	r                 *rand.Rand
	directives, nulls bool
	readds            bool // an item was deleted and added again
}

func (g *generator) template() map[string]any {
	return g.object("", map[string]func() any{
		"metadata": func() any {
			return g.object("metadata", map[string]func() any{
				"labels": g.texts, "annotations": g.texts, "finalizers": func() any { return g.words() },
			})
		},
		"spec": func() any {
			return g.object("spec", map[string]func() any{
				"containers": g.containers, "initContainers": g.containers,
				"volumes": g.list("name", func() map[string]any {
					return g.object("volume", map[string]func() any{
						"emptyDir": func() any { return g.object("emptyDir", map[string]func() any{"sizeLimit": g.quantity}) },
						"hostPath": func() any { return g.object("hostPath", map[string]func() any{"path": g.word}) },
					})
				}),
				"nodeSelector": g.texts,
				"hostAliases": g.list("ip", func() map[string]any {
					return map[string]any{"hostnames": g.words()}
				}),
				"tolerations":       func() any { return []any{map[string]any{"key": g.word()}} },
				"priorityClassName": g.word,
				"hostNetwork":       func() any { return g.r.IntN(2) == 0 },
				"securityContext": func() any {
					return g.object("securityContext", map[string]func() any{"runAsUser": g.number, "runAsGroup": g.number, "supplementalGroups": func() any {
						return []any{g.number()}
					}})
				},
			})
		},
	})
}

func (g *generator) containers() any {
	return g.list("name", func() map[string]any {
		return g.object("container", map[string]func() any{
			"image": g.word, "args": func() any { return g.words() }, "command": func() any { return g.words() },
			"env": g.list("name", func() map[string]any { return g.object("env", map[string]func() any{"value": g.word}) }),
			"ports": g.list("containerPort", func() map[string]any {
				return g.object("port", map[string]func() any{"name": g.word, "hostPort": g.number})
			}),
			"resources": func() any {
				return g.object("resources", map[string]func() any{"limits": func() any {
					return g.object("map", map[string]func() any{"cpu": g.quantity, "memory": g.quantity})
				}})
			},
		})
	})()
}

// object returns some of the fields.
func (g *generator) object(kind string, fields map[string]func() any) map[string]any {
	object := map[string]any{}
	if g.directives && kind != "" && g.r.IntN(12) == 0 {
		object["$patch"] = []string{"replace", "delete"}[g.r.IntN(2)]
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // in a fixed order, so that a seed always gives the same patch
		switch choice := g.r.IntN(10); {
		case choice < 4:
			object[name] = fields[name]()
			g.orders(object, name)
		case choice == 4 && g.nulls:
			object[name] = nil
		case choice == 5 && g.directives:
			if words, ok := fields[name]().([]any); ok && g.r.IntN(2) == 0 {
				object["$deleteFromPrimitiveList/"+name] = words
			}
		}
	}
	if g.directives && g.r.IntN(12) == 0 {
		retained := []any{}
		for name, value := range object {
			if _, known := fields[name]; known && value != nil {
				retained = append(retained, name)
			}
		}
		object["$retainKeys"] = retained
	}
	return object
}

// orders sometimes adds a directive that sets the order of the items.
func (g *generator) orders(object map[string]any, name string) {
	items, isList := object[name].([]any)
	if !isList || !g.directives || g.r.IntN(6) > 0 {
		return
	}
	var order []any
	for _, item := range items {
		item, isObject := item.(map[string]any)
		if !isObject {
			return
		}
		for _, key := range []string{"name", "ip", "containerPort"} {
			if item[key] != nil && item["$patch"] == nil && (key != "name" || item["containerPort"] == nil) {
				order = append(order, map[string]any{key: item[key]})
				if key == "name" && g.r.IntN(2) == 0 {
					order = append(order, map[string]any{key: g.word()})
				}
			}
		}
	}
	object["$setElementOrder/"+name] = order
}

// list returns a function that generates a list of items with a key.
func (g *generator) list(key string, item func() map[string]any) func() any {
	return func() any {
		items := []any{}
		if g.directives && g.r.IntN(12) == 0 {
			items = append(items, map[string]any{"$patch": "replace"})
		}
		for _, i := range g.r.Perm(4)[:g.r.IntN(4)] {
			object := item()
			delete(object, "$patch")
			if retained, ok := object["$retainKeys"].([]any); ok {
				object["$retainKeys"] = append(retained, key)
			}
			object[key] = []any{"a", "b", "c", "d"}[i]
			if key == "containerPort" {
				object[key] = i + 1
			}
			if g.directives && g.r.IntN(6) == 0 {
				items = append(items, map[string]any{key: object[key], "$patch": "delete"})
				if g.r.IntN(2) == 0 {
					continue
				}
				g.readds = true
			}
			items = append(items, object)
		}
		return items
	}
}

func (g *generator) word() any     { return []any{"a", "b", "c", "d"}[g.r.IntN(4)] }
func (g *generator) number() any   { return g.r.IntN(4) + 1 }
func (g *generator) quantity() any { return []any{"1", "500m", "1Gi", 2}[g.r.IntN(4)] }

func (g *generator) words() any {
	words := []any{}
	for _, i := range g.r.Perm(4)[:g.r.IntN(4)] {
		words = append(words, string(rune('a'+i)))
	}
	return words
}

func (g *generator) texts() any {
	return g.object("map", map[string]func() any{"a": g.word, "b": g.word, "c": g.word})
}
