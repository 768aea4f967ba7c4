package controller_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/examples/internal/operatortest"
)

// TestUpgradeWithReferences reconciles what the previous version of the operator left of an App that refers to a
// ConfigMap. The pod template's annotation is a hash of the ConfigMap's UID and resource version, so that the objects need
// to have those that they had.
func TestUpgradeWithReferences(t *testing.T) {
	scheme := operatortest.NewScheme(clientgoscheme.AddToScheme, appv1.AddToScheme)
	h := newHarness(t, operatortest.TypedDump(t, "testdata/upgrade.yaml", scheme)...)
	_, err := h.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "upgrade", Name: "configured"}})
	require.NoError(t, err)
	assert.Zero(t, h.writes.Load(), "an upgrade writes nothing, so that no pod is replaced")
}
