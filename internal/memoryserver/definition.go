package memoryserver

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// definition is a file's custom resource definition, ready to serve.
type definition struct {
	hash  string // of what it was parsed from
	kinds []*kind
}

var parsed struct {
	sync.Mutex
	definitions map[string][]*definition // by hash of the content
}

// parseContent parses a file's custom resource definitions, once per process: compiling a schema
// takes milliseconds, and its rules in CEL tens of them.
func parseContent(content []byte) ([]*definition, error) {
	sum := sha256.Sum256(content)
	hash := string(sum[:])
	parsed.Lock()
	defer parsed.Unlock()
	if found, done := parsed.definitions[hash]; done {
		return found, nil
	}
	found, err := parseDocuments(content)
	if err != nil {
		return nil, err
	}
	for i, d := range found {
		d.hash = fmt.Sprintf("%x/%d ", sum, i)
	}
	if parsed.definitions == nil {
		parsed.definitions = map[string][]*definition{}
	}
	parsed.definitions[hash] = found
	return found, nil
}

func parseDocuments(content []byte) (found []*definition, err error) {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		var crd apiextensionsv1.CustomResourceDefinition
		err := documents.Decode(&crd)
		switch {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		case crd.Kind != "CustomResourceDefinition":
			continue
		}
		d, err := define(&crd)
		if err != nil {
			return nil, fmt.Errorf("custom resource definition %s: %w", crd.Name, err)
		}
		found = append(found, d)
	}
}

// define makes a kind of each served version. They are separate stores: nothing is converted.
func define(crd *apiextensionsv1.CustomResourceDefinition) (*definition, error) {
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	d := &definition{}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		if !version.Served {
			continue
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		k := &kind{
			gvk: gvk, resource: gvk.GroupVersion().WithResource(crd.Spec.Names.Plural), singular: strings.ToLower(gvk.Kind),
			namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, lock: true,
		}
		var scale *apiextensionsv1.CustomResourceSubresourceScale
		if sub := version.Subresources; sub != nil {
			k.status, scale = sub.Status != nil, sub.Scale
		}
		k.scaled = scale != nil
		if err := compile(k, version.Schema, scale); err != nil {
			return nil, fmt.Errorf("version %s: %w", version.Name, err)
		}
		d.kinds = append(d.kinds, k)
	}
	return d, nil
}
