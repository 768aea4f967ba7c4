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
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/webhook"
)

// Definition is a custom resource definition whose schemas are compiled. It never changes.
type Definition struct {
	ID    string       // the hash of the document that has the definition, and the position in that document
	Kinds []*kind.Kind // one for each served version
}

var parsed struct {
	sync.Mutex
	definitions map[string][]*Definition // by hash of the content
}

// Parse returns the custom resource definitions in documents of YAML or JSON, and ignores other documents. It compiles the same content
// only once per process: a schema takes milliseconds, and its CEL rules take tens of milliseconds.
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

// define makes a kind of each version. The definition has only the served ones.
func define(crd *apiextensionsv1.CustomResourceDefinition) (*Definition, error) {
	conversion := conversionOf(crd) // before the defaults are set, which include a conversion strategy
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	d := &Definition{}
	versions, types := &kind.Versions{Conversion: conversion}, versionedTypes{}
	for i := range crd.Spec.Versions {
		version := &crd.Spec.Versions[i]
		k, of, err := newKind(&crd.Spec, version)
		if err != nil {
			return nil, fmt.Errorf("version %s: %w", version.Name, err)
		}
		types[k.GVK.GroupVersion()] = of
		versions.All = append(versions.All, k)
		if version.Served {
			versions.Served = append(versions.Served, k)
		}
		if version.Storage {
			if versions.Storage != nil {
				return nil, fmt.Errorf("the versions %s and %s are both the storage version: leave one", versions.Storage.GVK.Version, version.Name)
			}
			versions.Storage = k
		}
	}
	switch d.Kinds = versions.Served; {
	case len(versions.Served) == 0: // no version is served, so no object can exist
	case versions.Storage == nil:
		return nil, errors.New("it has no storage version: set storage: true in one of the versions")
	case len(versions.All) == 1:
		k := versions.All[0]
		k.FieldManagers = kind.NewFieldManagers(k, types[k.GVK.GroupVersion()], statusResets...)
	default:
		versions.NewFieldManagers = func(k *kind.Kind, convert kind.Convert) map[string]*managedfields.FieldManager {
			return kind.NewVersionedFieldManagers(k, types, convert, statusResets...)
		}
		for _, k := range versions.All {
			k.Versions = versions
		}
	}
	return d, nil
}

// statusResets are the fields that a write of the status subresource resets.
var statusResets = []fieldpath.Path{fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")}

// newKind makes the kind of one version, with its types for server-side apply.
func newKind(crd *apiextensionsv1.CustomResourceDefinitionSpec, version *apiextensionsv1.CustomResourceDefinitionVersion) (*kind.Kind, objectTypes, error) {
	gvk := schema.GroupVersionKind{Group: crd.Group, Version: version.Name, Kind: crd.Names.Kind}
	k := &kind.Kind{
		GVK: gvk, Resource: gvk.GroupVersion().WithResource(crd.Names.Plural), Singular: strings.ToLower(gvk.Kind),
		Namespaced: crd.Scope == apiextensionsv1.NamespaceScoped, RequireVersion: true, Custom: true,
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
	types, err := compile(k, version.Schema, scale)
	return k, types, err
}

// conversionOf returns how the definition converts objects, and the address of the webhook. If the definition does not say how, the address
// is the default of generated projects.
func conversionOf(crd *apiextensionsv1.CustomResourceDefinition) kind.Conversion {
	made := kind.Conversion{URL: "https://webhook-service.system.svc:443/convert"}
	to := crd.Spec.Conversion
	if to == nil {
		return made
	}
	if made.Strategy = string(to.Strategy); to.Webhook == nil || to.Webhook.ClientConfig == nil {
		return made
	}
	switch config := to.Webhook.ClientConfig; {
	case config.URL != nil:
		made.URL = *config.URL
	case config.Service != nil:
		made.URL = webhook.ServiceAddress(config.Service.Name, config.Service.Namespace, config.Service.Port, config.Service.Path)
	}
	return made
}
