package test

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestUpgrade starts the operator on what its previous version left, at the time when that stopped: it writes nothing, so
// that no Deployment is restarted.
func TestUpgrade(t *testing.T) {
	left := operatortest.Restore(t, apiServer(t), scheme, "testdata/upgrade.yaml", map[string]map[string]any{
		"Eru": {"enabled": false}, "Deployment": {"paused": true},
	})
	r, clock := stepped()
	clock.SetTime(four)
	o := startOperator(t, r, left.ControlPlane.Config(), ctrl.Options{}, left.Namespace)
	left.AssertUnchanged(t, o, "Eru")
}
