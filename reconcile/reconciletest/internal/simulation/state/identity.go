package state

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Identities are what the API server has given to the objects of a run: UIDs, resource versions and generated names. Objects that are
// deleted count too. Two runs with the same result have different identities. The zero value is empty.
type Identities struct {
	uids     []identity
	names    []identity        // generated names
	versions map[string]string // the object's kind and name for each resource version
	known    map[string]bool   // the UIDs in uids
	outside  []string          // IDs of things outside of the cluster, each followed by its replacement
}

// identity is a UID or a generated name, and its replacement in the state.
type identity struct{ value, replacement string }

// Add adds the identities of one version of an object.
func (i *Identities) Add(obj client.Object) {
	if i.known == nil {
		i.known, i.versions = map[string]bool{}, map[string]string{}
	}
	object := obj.GetObjectKind().GroupVersionKind().Kind + " " + obj.GetName()
	i.versions[obj.GetResourceVersion()] = object
	uid := string(obj.GetUID())
	if uid == "" || i.known[uid] {
		return
	}
	i.known[uid] = true
	i.uids = append(i.uids, identity{uid, "<uid of " + object + ">"})
	if prefix, name := obj.GetGenerateName(), obj.GetName(); isGenerated(prefix, name) {
		i.names = append(i.names, identity{name, prefix + "<gone>"})
	}
}

// SetOutside sets the IDs of things outside of the cluster. Each is followed by its replacement.
func (i *Identities) SetOutside(pairs []string) { i.outside = pairs }

// isGenerated reports whether the API server generated an object's name from the prefix.
func isGenerated(prefix, name string) bool {
	return prefix != "" && len(name) > len(prefix) && strings.HasPrefix(name, prefix)
}

// pairs returns the identities in the form that strings.NewReplacer takes: each value, followed by its replacement. It leaves out the
// values in exist.
func pairs(all []identity, exist map[string]bool) []string {
	var found []string
	for _, i := range all {
		if !exist[i.value] {
			found = append(found, i.value, i.replacement)
		}
	}
	return found
}

// markStaleOwners replaces the UIDs of deleted objects in owner references: an object whose owner is deleted differs from an object whose
// owner exists. In other fields the UID of a deleted object makes no difference.
func (i *Identities) markStaleOwners(u *unstructured.Unstructured, exist map[string]bool) {
	references, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "ownerReferences")
	list, _ := references.([]any)
	for _, item := range list {
		reference, ok := item.(map[string]any)
		if uid, _ := reference["uid"].(string); ok && i.known[uid] && !exist[uid] {
			reference["uid"] = "<uid of an earlier object>"
		}
	}
}

// minVersion is the smallest resource version that is replaced in fields of any name. Smaller numbers are often versions of something else,
// such as a database. All objects that exist before the first action have smaller versions.
const minVersion = 1000

// replaceVersions replaces resource versions in fields whose name ends with resourceVersion. In other fields with
// "version" in their name, it replaces only versions that an object of the run had.
func (i *Identities) replaceVersions(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, e := range v {
			text, ok := e.(string)
			if !ok {
				i.replaceVersions(e)
				continue
			}
			name := strings.ToLower(key)
			switch n, err := strconv.Atoi(text); {
			case err != nil || !strings.Contains(name, "version"):
			case strings.HasSuffix(name, "resourceversion"):
				v[key] = "<version>"
			case n >= minVersion && i.versions[text] != "":
				v[key] = "<version of " + i.versions[text] + ">"
			}
		}
	case []any:
		for _, e := range v {
			i.replaceVersions(e)
		}
	}
}
