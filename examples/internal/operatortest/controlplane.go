package operatortest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

// ControlPlanes returns two control planes that the tests of a package share, with the CRDs of a folder, such as
// ../config/crd/bases. On cluster all controllers of Kubernetes run, with simulated nodes. On apiServer there are none: only
// the test and the operator write; the options are for it.
func ControlPlanes(crds string, options ...controlplane.Option) (cluster, apiServer func(testing.TB) *controlplane.ControlPlane) {
	return WithCRDs(crds, controlplanetest.Shared(controlplane.WithControllers())), WithCRDs(crds, controlplanetest.Shared(options...))
}

// EnforceOwnerReferences enables the admission plug-in that lets nobody change the owners of an object who may not delete it,
// and nobody block the deletion of an owner whose finalizers he may not change. Some distributions enable it.
func EnforceOwnerReferences() controlplane.Option {
	return controlplane.WithAPIServerArgs("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
}

// WithCRDs installs the CRDs of a folder when a control plane is first used.
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
