package operatortest

import (
	"testing"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// ControlPlanes returns two control planes that the tests of a package share, with the CRDs of a folder, such as
// ../config/crd/bases. On cluster all controllers of Kubernetes run, with simulated nodes. On apiServer there are none: only
// the test and the operator write; the options are for it.
func ControlPlanes(crds string, options ...controlplane.Option) (cluster, apiServer func(testing.TB) *controlplane.ControlPlane) {
	installed := controlplane.WithCRDs(crds)
	return controlplane.Shared(installed, controlplane.WithControllers()), controlplane.Shared(append(options, installed)...)
}

// EnforceOwnerReferences enables the admission plug-in that lets nobody change the owners of an object who may not delete it,
// and nobody block the deletion of an owner whose finalizers he may not change. Some distributions enable it.
func EnforceOwnerReferences() controlplane.Option {
	return controlplane.WithAPIServerArgs("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
}
