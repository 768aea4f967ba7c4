package programs

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAsset(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	tests := map[string]struct {
		reason string
		script string
		fits   bool
	}{
		"SameVersion": {"it is the wanted version", "echo Kubernetes v1.36.3", true},
		"OtherPatch":  {"only the minor version must be the wanted one", "echo Kubernetes v1.36.10", true},
		"OtherMinor":  {"an older minor version behaves differently", "echo Kubernetes v1.35.3", false},
		"LongerMinor": {"the whole number is compared", "echo Kubernetes v1.360.3", false},
		"ExitCode":    {"the program does not run on this machine", "exit 1", false},
		"NoOutput":    {"the version is unknown", "true", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, "kube-apiserver")
			write(t, path, "#!/bin/sh\n"+tc.script+"\n")
			_, fits := asset(t.Context(), Program{"kube-apiserver", kubernetesModule + "/cmd/kube-apiserver"}, "v1.36.3")
			assert.Equal(t, tc.fits, fits, tc.reason)
		})
	}
}

func TestAssetOfOtherModule(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	write(t, filepath.Join(folder, "etcd"), "#!/bin/sh\necho etcd Version: "+versionIn(pinnedMod, etcdModule)[1:]+"\n")
	_, fits := asset(t.Context(), Program{Etcd, etcdModule}, "v1.34.0")
	assert.True(t, fits, "etcd has versions of its own")
}
