package controlplane_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

func TestInstallCRDsStartsGarbageCollection(t *testing.T) {
	cp := shared(t)
	namespace := controlplane.Namespace(t, cp)
	pause(t, cp)
	require.NoError(t, cp.InstallCRDs(t.Context(), "testdata/widgets.yaml"))
	require.Len(t, stopped(t, cp), 3, "the new kube-controller-manager is paused as well")
	require.NoError(t, cp.ResumeControllers())

	kubectl(t, cp, namespace, "apply", "-f", "testdata/widget.yaml")
	uid := kubectl(t, cp, namespace, "get", "widget/parent", "-o", "jsonpath={.metadata.uid}")
	kubectl(t, cp, namespace, "create", "configmap", "child")
	kubectl(t, cp, namespace, "patch", "configmap/child", "--patch", `{"metadata": {"ownerReferences": [
		{"apiVersion": "example.com/v1", "kind": "Widget", "name": "parent", "uid": "`+uid+`"}]}}`)

	kubectl(t, cp, namespace, "delete", "widget/parent")
	kubectl(t, cp, namespace, "wait", "--for=delete", "configmap/child", "--timeout=5m")
}

func TestInstallCRDsMissingFile(t *testing.T) {
	err := shared(t).InstallCRDs(t.Context(), "testdata/missing.yaml")
	assert.ErrorContains(t, err, "install the CustomResourceDefinitions in testdata/missing.yaml:")
}
