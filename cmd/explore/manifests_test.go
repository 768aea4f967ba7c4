package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const boxes = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: example.com, scope: Namespaced, names: {kind: Box}, versions: [{name: v1, served: true, storage: true}]}\n"

// Projects have their definitions in different folders.
func TestFindsDefinitions(t *testing.T) {
	for _, folder := range []string{"config/crd/bases", "config/crds", "crds", "charts/box/crds", "chart/crds", "helm/box/crds", "deploy/charts/box/crds"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, folder, "boxes.yaml"), boxes)
		found := (&module{root: dir}).manifests()
		assert.Equal(t, []string{filepath.Join(dir, folder)}, found.crdFiles)
	}
}

// Variables that envsubst replaces get values that the API server accepts.
func TestVariables(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config/crd/bases/boxes.yaml"), boxes)
	write(t, filepath.Join(dir, "config/samples/box.yaml"), "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: \"${BOX_NAME}\", namespace: \"${TARGET_NAMESPACE}\"}\n"+
		"spec: {image: \"box:${TAG:-v1}\", sizes: [\"${SIZE:=3}\", \"$5\"]}\n")
	obj, isSample := (&module{root: dir}).manifests().object(typeRef{path: "example.com/api/v1", name: "Box"})
	require.True(t, isSample)
	assert.Equal(t, map[string]any{"name": "box-name", "namespace": "default"}, obj["metadata"])
	assert.Equal(t, map[string]any{"image": "box:v1", "sizes": []any{"3", "$5"}}, obj["spec"])
}
