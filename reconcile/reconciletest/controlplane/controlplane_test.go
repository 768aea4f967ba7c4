package controlplane_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

var shared = controlplane.Shared(controlplane.Options{Controllers: true})

func TestStartConcurrently(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	var both sync.WaitGroup
	planes := make([]*controlplane.ControlPlane, 2)
	for i := range planes {
		both.Go(func() { planes[i] = controlplane.New(t, controlplane.Options{CRDs: []string{"testdata/widgets.yaml"}}) })
	}
	both.Wait()
	assert.NotEqual(t, planes[0].Config().Host, planes[1].Config().Host)
	for _, cp := range planes {
		_, err := newClient(t, cp).RESTMapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
		assert.NoError(t, err, "the CRDs are installed")
		const none = "no controllers run: start the control plane with the option Controllers"
		assert.EqualError(t, cp.PauseControllers(), none)
		assert.EqualError(t, cp.ResumeControllers(), none)
		assert.EqualError(t, cp.RestartControllerManager(t.Context()), none)
	}
}

func TestStartFails(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	t.Setenv("TMPDIR", t.TempDir())
	_, err := controlplane.Start(t.Context(), controlplane.Options{APIServerArgs: []string{"--no-such-flag"}})
	assert.ErrorContains(t, err, "start a control plane: kube-apiserver ended: exit status 1")
	assert.ErrorContains(t, err, "unknown flag: --no-such-flag")
	assertEmpty(t, os.TempDir())
}

// TestStartWrongOption shows that options are checked before a program is built or started: here the context is cancelled already.
func TestStartWrongOption(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	const noCRD = "name the folder that has the YAML files themselves, since subfolders are not read"
	tests := map[string]struct {
		reason string
		option controlplane.Options
		want   string
	}{
		"NegativeNodes": {
			"it is no number of nodes",
			controlplane.Options{Nodes: new(-1)}, "-1 simulated nodes cannot run: name a number of 0 or more",
		},
		"MissingPath": {
			"a path may be relative to another folder",
			controlplane.Options{CRDs: []string{"testdata/widgets.yaml", "testdata/missing"}},
			"install the CustomResourceDefinitions in testdata/missing: stat testdata/missing: no such file or directory",
		},
		"PathBelowFile": {
			"the error is not that of a missing file",
			controlplane.Options{CRDs: []string{"doc.go/crds"}},
			"install the CustomResourceDefinitions in doc.go/crds: stat doc.go/crds: not a directory",
		},
		"FolderWithoutCRD": {
			"subfolders are not read, and kustomization.yaml has none",
			controlplane.Options{CRDs: []string{"internal"}}, "no CustomResourceDefinition in internal: " + noCRD,
		},
		"FileWithoutCRD": {
			"it has another object",
			controlplane.Options{CRDs: []string{"testdata/widget.yaml"}}, "no CustomResourceDefinition in testdata/widget.yaml: " + noCRD,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := controlplane.Start(ctx, tc.option)
			require.EqualError(t, err, "start a control plane: "+tc.want, tc.reason)
			_, err = controlplane.Build(ctx, tc.option)
			require.EqualError(t, err, tc.want, tc.reason)
		})
	}
}

func TestStartUnknownVersion(t *testing.T) {
	_, err := controlplane.Start(t.Context(), controlplane.Options{Version: "1.34"})
	assert.ErrorContains(t, err, `"1.34" is no version of Kubernetes: name a release such as v1.`)
	t.Setenv("OPBLOCKS_KUBERNETES", "latest")
	_, err = controlplane.Start(t.Context(), controlplane.Options{})
	assert.ErrorContains(t, err, `"latest" is no version of Kubernetes`)
}

func newClient(t *testing.T, cp *controlplane.ControlPlane) client.Client {
	t.Helper()
	c, err := client.New(cp.Config(), client.Options{})
	require.NoError(t, err)
	return c
}

func kubectl(t *testing.T, cp *controlplane.ControlPlane, namespace string, args ...string) string {
	t.Helper()
	out, err := cp.Kubectl(t.Context(), append([]string{"--namespace=" + namespace}, args...)...)
	require.NoError(t, err)
	return strings.TrimSpace(out)
}

func eventually(t *testing.T, what string, done func(context.Context) (bool, error)) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, controlplane.Patience, true, done)
	require.NoError(t, err, "waiting until %s", what)
}

func assertEmpty(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, entries)
}
