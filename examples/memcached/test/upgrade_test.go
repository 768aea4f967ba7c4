package test

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestUpgrade starts the operator on what its previous version left: it writes nothing, so that no pod is replaced.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	left := operatortest.Restore(t, apiServer(t), scheme, "testdata/upgrade.yaml", map[string]map[string]any{
		"Memcached": {"size": int64(0)}, "Deployment": {"replicas": int64(0)},
	})
	o := startOperator(t, left.ControlPlane.Config(), ctrl.Options{}, left.Namespace)
	left.AssertUnchanged(t, o, "Memcached")
}
