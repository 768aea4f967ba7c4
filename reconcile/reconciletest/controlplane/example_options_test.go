package controlplane_test

import (
	"testing"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

// A test runs the operator on an older Kubernetes, with an admission plug-in that some distributions enable and ten nodes.
func ExampleOptions() {
	testOlder := func(t *testing.T) {
		cp := controlplane.New(t, controlplane.Options{
			Version: "v1.35.4", Nodes: new(10),
			APIServerArgs: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"},
		})
		_ = cp.Config() // to be used in the operator's manager
	}
	_ = testOlder
}
