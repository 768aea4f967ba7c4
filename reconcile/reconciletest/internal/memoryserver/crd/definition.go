package crd

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

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// Definition is a custom resource definition whose schemas are compiled. It never changes.
type Definition struct {
	ID    string // the hash of the document that defines it, and its place there
	Kinds []*kind.Kind
}

var parsed struct {
	sync.Mutex
	definitions map[string][]*Definition // by hash of the content
}

// Parse returns the custom resource definitions in documents of YAML or JSON, and ignores other documents. It
// compiles the same content once per process: a schema takes milliseconds, and its rules in CEL tens of them.
func Parse(content []byte) ([]*Definition, error) {
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
		d.ID = fmt.Sprintf("%x/%d ", sum, i)
	}
	if parsed.definitions == nil {
		parsed.definitions = map[string][]*Definition{}
	}
	parsed.definitions[hash] = found
	return found, nil
}

func parseDocuments(content []byte) (found []*Definition, err error) {
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

// define makes a kind of each served version. Each version is stored apart: nothing is converted.
func define(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	d := &Definition{}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		if !version.Served {
			continue
		}
		gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		k := &kind.Kind{
			GVK: gvk, Resource: gvk.GroupVersion().WithResource(crd.Spec.Names.Plural), Singular: strings.ToLower(gvk.Kind),
			Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, RequireVersion: true, Custom: true,
		}
		for _, field := range version.SelectableFields {
			if k.Selectable == nil {
				k.Selectable = map[string]string{}
			}
			k.Selectable[strings.TrimPrefix(field.JSONPath, ".")] = ""
		}
		var scale *apiextensionsv1.CustomResourceSubresourceScale
		if sub := version.Subresources; sub != nil {
			k.HasStatus, scale = sub.Status != nil, sub.Scale
		}
		k.HasScale = scale != nil
		if err := compile(k, version.Schema, scale); err != nil {
			return nil, fmt.Errorf("version %s: %w", version.Name, err)
		}
		d.Kinds = append(d.Kinds, k)
	}
	return d, nil
}
