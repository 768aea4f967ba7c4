package operatortest

import (
	"testing"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// ControlPlanes returns two control planes that the tests of a package share, with the CRDs of a folder, such as
// ../config/crd/bases. On cluster all controllers of Kubernetes run, with simulated nodes. On apiServer there are none: only
// the test and the operator write; the arguments are for its kube-apiserver.
func ControlPlanes(crds string, arguments ...string) (cluster, apiServer func(testing.TB) *controlplane.ControlPlane) {
	folders := []string{crds}
	return controlplane.Shared(controlplane.Options{Controllers: true, CRDs: folders}), controlplane.Shared(controlplane.Options{APIServerArgs: arguments, CRDs: folders})
}

// EnforceOwnerReferences enables the admission plug-in that lets nobody change the owners of an object who may not delete it,
// and nobody block the deletion of an owner whose finalizers he may not change. Some distributions enable it.
const EnforceOwnerReferences = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
