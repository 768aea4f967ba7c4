package main

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// makeExample is an argument of the repository's Makefile, which has several examples.
var makeExample = regexp.MustCompile(` EXAMPLE=[a-z]+`)

// manifest returns a file of the folder config with the names of the copy. Generated files are as controller-gen writes them.
func (r *renaming) manifest(name string, text []byte) ([]byte, error) {
	switch {
	case strings.Contains(name, "/config/crd/bases/"):
		return r.documents(text, r.crd)
	case strings.HasSuffix(name, "/config/rbac/role.yaml"):
		return r.documents(text, r.role)
	case strings.HasSuffix(name, "/config/webhook/base/manifests.yaml"):
		return r.documents(text, r.webhooks)
	}
	return []byte(r.text(makeExample.ReplaceAllString(string(text), ""))), nil
}

// documents replaces each document of a generated file.
func (r *renaming) documents(text []byte, rename func(map[string]any)) ([]byte, error) {
	var out []byte
	for document := range bytes.SplitSeq(bytes.TrimPrefix(text, []byte("---\n")), []byte("\n---\n")) {
		var object map[string]any
		if err := yaml.Unmarshal(document, &object); err != nil {
			return nil, err
		}
		rename(object)
		written, err := yaml.Marshal(object)
		if err != nil {
			return nil, err
		}
		out = append(append(out, "---\n"...), written...)
	}
	return out, nil
}

// crd renames in a CustomResourceDefinition. Descriptions are comments of the API's types.
func (r *renaming) crd(object map[string]any) {
	spec := object["spec"].(map[string]any)
	delete(spec["names"].(map[string]any), "shortNames") // the marker loses them too
	spec["versions"] = slices.DeleteFunc(spec["versions"].([]any), func(version any) bool {
		return version.(map[string]any)["name"] != r.from.version
	})
	spec["versions"].([]any)[0].(map[string]any)["name"] = r.to.version
	r.strings(object)
	names := spec["names"].(map[string]any)
	names["kind"], names["listKind"], names["plural"], names["singular"] = r.to.kind, r.to.kind+"List", r.to.plural, r.to.lower
}

// strings renames in all strings of a value.
func (r *renaming) strings(value any) any {
	switch value := value.(type) {
	case string:
		return r.text(value)
	case []any:
		for i := range value {
			value[i] = r.strings(value[i])
		}
	case map[string]any:
		for key := range value {
			value[key] = r.strings(value[key])
		}
	}
	return value
}

// role renames in a Role or ClusterRole, and sorts its rules as controller-gen does.
func (r *renaming) role(object map[string]any) {
	rules, _ := object["rules"].([]any)
	for _, rule := range rules {
		rule := rule.(map[string]any)
		groups := texts(rule["apiGroups"])
		if !slices.Contains(groups, r.from.group) {
			continue
		}
		for i := range groups {
			if groups[i] == r.from.group {
				groups[i] = r.to.group
			}
		}
		resources := r.resources(texts(rule["resources"]))
		slices.Sort(groups)
		slices.Sort(resources)
		rule["apiGroups"], rule["resources"] = groups, resources
	}
	key := func(rule any) string {
		fields := rule.(map[string]any)
		return strings.Join(texts(fields["apiGroups"]), "&") + " + " + strings.Join(texts(fields["resources"]), "&")
	}
	slices.SortStableFunc(rules, func(a, b any) int { return strings.Compare(key(a), key(b)) })
}

// webhooks renames in a configuration of webhooks. The versions of its own API are not the kind's.
func (r *renaming) webhooks(object map[string]any) {
	r.strings(object)
	for _, webhook := range object["webhooks"].([]any) {
		for _, rule := range webhook.(map[string]any)["rules"].([]any) {
			rule := rule.(map[string]any)
			versions := texts(rule["apiVersions"])
			for i := range versions {
				if versions[i] == r.from.version {
					versions[i] = r.to.version
				}
			}
			rule["apiVersions"] = versions
		}
	}
}

// texts returns a list of strings.
func texts(list any) (all []string) {
	switch list := list.(type) {
	case []string:
		return list
	case []any:
		for _, item := range list {
			all = append(all, item.(string))
		}
	}
	return all
}

// target returns the path in the new module of a file of the example, or of the folder internal.
func (r *renaming) target(name string) string {
	name = strings.TrimPrefix(name, r.from.lower+"/")
	if strings.HasPrefix(name, "internal/") {
		return name
	}
	folder, base := path.Split(strings.Replace(name, "api/"+r.from.version+"/", "api/"+r.to.version+"/", 1))
	if !strings.HasSuffix(base, ".go") {
		return folder + r.text(base)
	}
	words := strings.Split(strings.TrimSuffix(base, ".go"), "_")
	for i := range words {
		if words[i] == r.from.lower {
			words[i] = r.to.lower
		}
	}
	return folder + strings.Join(words, "_") + ".go"
}
