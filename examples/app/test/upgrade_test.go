package test

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestUpgrade starts the operator on what its previous version left: it writes nothing, so that no pod is replaced. That
// the hash of ConfigMaps and Secrets is as before is tested with the fake client, which keeps their UIDs.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	left := operatortest.Restore(t, apiServer(t), scheme, "testdata/upgrade.yaml", map[string]map[string]any{
		"App": {"image": "nginx:1.16.1"}, "Deployment": {"paused": true},
	})
	o := startOperator(t, left.ControlPlane.Config(), ctrl.Options{}, left.Namespace)
	left.AssertUnchanged(t, o, "App")
}
