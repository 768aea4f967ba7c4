package controlplane_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// TestBuild runs envtest with the programs of this package.
func TestBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	assets, err := controlplane.Build(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	for _, program := range []string{"etcd", "kube-apiserver", "kubectl"} {
		assert.FileExists(t, filepath.Join(assets, program))
	}
	environment := &envtest.Environment{BinaryAssetsDirectory: assets, CRDDirectoryPaths: []string{"testdata/widgets.yaml"}}
	config, err := environment.Start()
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, environment.Stop()) })
	c, err := client.New(config, client.Options{})
	require.NoError(t, err)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "default"}, &corev1.Namespace{}))
}

// TestBuildUsesAssets tests that Build uses the programs in the folder KUBEBUILDER_ASSETS. Here that is the folder that Build has returned
// before.
func TestBuildUsesAssets(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	assets, err := controlplane.Build(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	folder := filepath.Join(t.TempDir(), "assets")
	require.NoError(t, os.Symlink(assets, folder))
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	again, err := controlplane.Build(t.Context(), controlplane.Options{})
	require.NoError(t, err)
	assert.Equal(t, folder, again)
}
