package main

import (
	"cmp"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// manifests are the custom resource definitions and the samples of a module.
type manifests struct {
	crdFiles []string // absolute paths of files, or of one folder that contains nothing else
	crds     []*crd
	samples  []map[string]any
}

// crd has the parts of a CustomResourceDefinition that the command reads.
type crd struct {
	Kind string
	Spec struct {
		Group    string
		Scope    string
		Names    struct{ Kind string }
		Versions []crdVersion
	}
}

type crdVersion struct {
	Name    string
	Served  bool
	Storage bool
	Schema  struct {
		OpenAPIV3Schema *schema `json:"openAPIV3Schema"`
	}
}

// crdFolders are searched in this order. The first folder with definitions is used.
var crdFolders = []string{"config/crd/bases", "config/crd", "config/crds", "crds", "deploy/crds", "manifests", "charts/*/crds", "chart/crds", "helm/*/crds", "deploy/*/*/crds"}

// sampleFolders are searched in this order. The first folder with an object of the kind is used.
var sampleFolders = []string{"config/samples", "examples"}

// manifests reads the definitions and the samples. It ignores files that cannot be parsed, such as templates.
func (m *module) manifests() *manifests {
	found := &manifests{}
	for _, pattern := range crdFolders {
		folders, _ := filepath.Glob(filepath.Join(m.root, pattern))
		for _, folder := range folders {
			found.readDefinitions(folder)
		}
		if len(found.crds) > 0 {
			break
		}
	}
	for _, folder := range sampleFolders {
		for _, file := range yamlFiles(filepath.Join(m.root, folder)) {
			for _, doc := range documents(file) {
				var sample map[string]any
				if yaml.Unmarshal(doc, &sample) == nil && len(sample) > 0 {
					found.samples = append(found.samples, withValues(sample).(map[string]any))
				}
			}
		}
	}
	return found
}

// placeholder is a variable that envsubst and similar programs replace: ${NAMESPACE}, or ${NAMESPACE:=shops} with a default.
var placeholder = regexp.MustCompile(`\$\{(\w+)(?::?[-=]([^}]*))?\}`)

// withValues returns a JSON value in which variables are replaced by values: by the variable's default, or else by its name in lower case,
// such as "node-name". The namespace is "default".
func withValues(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			v[key] = withValues(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withValues(v[i])
		}
	case string:
		return placeholder.ReplaceAllStringFunc(v, func(found string) string {
			name, value := placeholder.FindStringSubmatch(found)[1], placeholder.FindStringSubmatch(found)[2]
			if value == "" && strings.HasSuffix(name, "NAMESPACE") {
				value = "default"
			}
			return cmp.Or(value, strings.ReplaceAll(strings.ToLower(name), "_", "-"))
		})
	}
	return v
}

func (f *manifests) readDefinitions(folder string) {
	var files []string
	others := false
	for _, file := range yamlFiles(folder) {
		before := len(f.crds)
		for _, doc := range documents(file) {
			var definition crd
			if yaml.Unmarshal(doc, &definition) == nil && definition.Kind == "CustomResourceDefinition" {
				f.crds = append(f.crds, &definition)
			} else {
				others = true
			}
		}
		if len(f.crds) > before {
			files = append(files, file)
		}
	}
	if !others && len(files) > 0 {
		files = []string{folder}
	}
	f.crdFiles = append(f.crdFiles, files...)
}

// yamlFiles returns the YAML files in a folder and below.
func yamlFiles(folder string) (files []string) {
	_ = filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(file)) {
			files = append(files, file)
		}
		return nil // files that cannot be read are ignored
	})
	return files
}

// documents returns the YAML documents of a file that are not empty.
func documents(file string) (docs [][]byte) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	for doc := range strings.SplitSeq("\n"+string(content), "\n---") {
		var value any
		if yaml.Unmarshal([]byte(doc), &value) != nil || value != nil {
			docs = append(docs, []byte(doc))
		}
	}
	return docs
}

// definition returns the CustomResourceDefinition of a Go type, and the version of that type. It returns nil if there is none.
func (f *manifests) definition(kind typeRef) (*crd, *crdVersion) {
	var other *crd
	for _, definition := range f.crds {
		if definition.Spec.Names.Kind != kind.name {
			continue
		}
		for i, version := range definition.Spec.Versions {
			if version.Name == path.Base(kind.path) {
				return definition, &definition.Spec.Versions[i]
			}
		}
		other = definition
	}
	if other == nil || strings.HasPrefix(kind.path, "k8s.io/api/") {
		return nil, nil
	}
	for i, version := range other.Spec.Versions {
		if version.Storage {
			return other, &other.Spec.Versions[i]
		}
	}
	return nil, nil
}

// object returns an object of a kind: its sample, or else an object with the required fields. If the kind has no definition, it returns an
// object with only a name, if that is valid for the kind. Otherwise it returns nil.
func (f *manifests) object(kind typeRef) (obj map[string]any, isSample bool) {
	definition, version := f.definition(kind)
	if definition == nil {
		return nameOnly(kind), false
	}
	apiVersion := definition.Spec.Group + "/" + version.Name
	i := slices.IndexFunc(f.samples, func(s map[string]any) bool {
		meta, _ := s["metadata"].(map[string]any)
		return s["kind"] == kind.name && s["apiVersion"] == apiVersion && meta["name"] != nil
	})
	if i >= 0 {
		obj, isSample = f.samples[i], true
		delete(obj, "status")
	} else {
		obj, _ = version.Schema.OpenAPIV3Schema.minimal().(map[string]any)
		if obj == nil {
			obj = map[string]any{}
		}
		obj["apiVersion"], obj["kind"] = apiVersion, kind.name
		obj["metadata"] = map[string]any{"name": "example"}
	}
	if meta, ok := obj["metadata"].(map[string]any); ok && definition.Spec.Scope == "Namespaced" && meta["namespace"] == nil {
		meta["namespace"] = "default"
	}
	return obj, isSample
}

// nameOnly returns an object with only a name, for the built-in kinds for which that is valid. For any other kind it returns nil.
func nameOnly(kind typeRef) map[string]any {
	meta := map[string]any{"name": "example"}
	switch {
	case kind.path != "k8s.io/api/core/v1":
		return nil
	case slices.Contains([]string{"ConfigMap", "Secret", "ServiceAccount"}, kind.name):
		meta["namespace"] = "default"
	case kind.name != "Node" && kind.name != "Namespace":
		return nil
	}
	return map[string]any{"apiVersion": "v1", "kind": kind.name, "metadata": meta}
}
