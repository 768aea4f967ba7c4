package operatortest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/controlplane"
)

// WithCRDs installs the CRDs of a folder, such as ../config/crd/bases, before a control plane is first used.
func WithCRDs(folder string, start func(testing.TB) *controlplane.ControlPlane) func(testing.TB) *controlplane.ControlPlane {
	var once sync.Once
	return func(t testing.TB) *controlplane.ControlPlane {
		t.Helper()
		cp := start(t)
		once.Do(func() {
			paths, err := filepath.Glob(folder + "/*.yaml")
			require.NoError(t, err)
			require.NotEmpty(t, paths, "there is no CRD in %s", folder)
			require.NoError(t, cp.InstallCRDs(context.Background(), paths...))
		})
		return cp
	}
}
