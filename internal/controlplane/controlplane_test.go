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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/controlplane"
	"github.com/opblocks/opblocks/internal/controlplane/controlplanetest"
)

var shared = controlplanetest.Shared(controlplane.WithControllers())

func TestKubectlShowsTheVersion(t *testing.T) {
	out, err := shared(t).Kubectl(t.Context(), "version")
	require.NoError(t, err)
	assert.Contains(t, out, "Client Version: v1.36.")
	assert.Contains(t, out, "Server Version: v1.36.")
}

func TestKubectlErrorSaysWhatKubectlSaid(t *testing.T) {
	_, err := shared(t).Kubectl(t.Context(), "get", "pod", "no-such-pod")
	assert.EqualError(t, err,
		`kubectl get pod no-such-pod: exit status 1: Error from server (NotFound): pods "no-such-pod" not found`)
}

func TestTwoAtOnce(t *testing.T) {
	var both sync.WaitGroup
	hosts := make([]string, 2)
	for i := range hosts {
		both.Go(func() { hosts[i] = controlplanetest.Start(t).Config().Host })
	}
	both.Wait()
	assert.NotEqual(t, hosts[0], hosts[1])
}

func TestFailedStartShowsTheLogAndLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	t.Setenv("TMPDIR", t.TempDir())
	_, err := controlplane.Start(t.Context(), controlplane.WithAPIServerArgs("--no-such-flag"))
	assert.ErrorContains(t, err, "start a control plane: kube-apiserver ended: exit status 1")
	assert.ErrorContains(t, err, "unknown flag: --no-such-flag")
	assertEmpty(t, os.TempDir())
}

func TestRestartsKeepObjects(t *testing.T) {
	cp := controlplanetest.Start(t, controlplane.WithControllers())
	namespace := controlplanetest.Namespace(t, cp)
	c := newClient(t, cp)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept"}}
	require.NoError(t, c.Create(t.Context(), kept))

	require.NoError(t, cp.RestartAPIServer(t.Context()))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), &corev1.ConfigMap{}))

	require.NoError(t, cp.RestartEtcd(t.Context()))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), &corev1.ConfigMap{}))

	// The controllers have survived both.
	kubectl(t, cp, namespace, "create", "deployment", "web", "--image=web", "--replicas=2")
	kubectl(t, cp, namespace, "rollout", "status", "deployment/web", "--timeout=30s")
}

func TestLogsOfAllPrograms(t *testing.T) {
	var logs strings.Builder
	require.NoError(t, shared(t).WriteLogs(&logs))
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		assert.Contains(t, logs.String(), "==> "+program+" <==\n")
	}
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
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 40*time.Second, true, done)
	require.NoError(t, err, "waiting until %s", what)
}

func assertEmpty(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, entries)
}
