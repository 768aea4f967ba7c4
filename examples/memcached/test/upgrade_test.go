package test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestUpgrade starts the operator on what its previous version left, which knew v1alpha1 alone: the owner references of the children get the
// new version, and nothing else is written, so that no pod is replaced.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	left := operatortest.Restore(t, apiServer(t), scheme, "testdata/upgrade.yaml", map[string]map[string]any{
		"Memcached": {"size": int64(0)}, "Deployment": {"replicas": int64(0)},
	})
	o := startOperator(t, left.ControlPlane.Config(), ctrl.Options{}, left.Namespace)
	requests := left.AssertOwnersMoved(t, o, kind)
	assert.Equal(t, 1+2, requests["PATCH deployments"], "one for each, and one more for a child that nobody has written since its creation")
	assert.Equal(t, 2+2, requests["PATCH services"], "neither was written since its creation")
}
