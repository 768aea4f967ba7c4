package controlplane_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane"
)

const ownerVariable = "CONTROLPLANE_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) == "" {
		flag.Parse()
		if testing.Short() {
			// An example cannot skip itself.
			if err := flag.Set("test.skip", "^Example"); err != nil {
				panic(err)
			}
		}
		os.Exit(m.Run())
	}
	cp, err := controlplane.Start(context.Background(), controlplane.Options{Controllers: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(filepath.Dir(cp.Kubeconfig()))
	select {} // wait until the test kills this process
}

func TestKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a real control plane")
	}
	program, err := os.Executable()
	require.NoError(t, err)
	owner := exec.Command(program)
	owner.Env = append(os.Environ(), ownerVariable+"=yes")
	stdout, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	t.Cleanup(func() { _ = owner.Wait() })
	folder, err := bufio.NewReader(stdout).ReadString('\n')
	folder = strings.TrimSpace(folder)
	assert.NoError(t, err)
	assert.Len(t, processesIn(t, folder), 5)

	require.NoError(t, owner.Process.Kill())
	eventually(t, "processes and files are gone", func(context.Context) (bool, error) {
		_, err := os.Stat(folder)
		return os.IsNotExist(err) && len(processesIn(t, folder)) == 0, nil
	})
}

// processesIn returns the processes of a control plane. Their command lines contain its folder.
func processesIn(t *testing.T, folder string) []string {
	t.Helper()
	out, err := exec.Command("pgrep", "-f", folder).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil
	}
	require.NoError(t, err)
	return strings.Fields(string(out))
}

func TestRestart(t *testing.T) {
	cp := controlplane.New(t, controlplane.Options{Controllers: true})
	namespace := controlplane.Namespace(t, cp)
	c := newClient(t, cp)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kept"}}
	require.NoError(t, c.Create(t.Context(), kept))

	require.NoError(t, cp.RestartAPIServer(t.Context()))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), &corev1.ConfigMap{}))

	require.NoError(t, cp.RestartEtcd(t.Context()))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), &corev1.ConfigMap{}))

	// The controllers work after both restarts.
	kubectl(t, cp, namespace, "create", "deployment", "web", "--image=web", "--replicas=2")
	kubectl(t, cp, namespace, "rollout", "status", "deployment/web", "--timeout=5m")
}

// TestRestoreEtcd shows that everything that happened after the copy is gone, and that the controllers see the restored objects.
func TestRestoreEtcd(t *testing.T) {
	cp := controlplane.New(t, controlplane.Options{Controllers: true})
	t.Cleanup(func() {
		if t.Failed() {
			assert.NoError(t, cp.WriteLogs(t.Output()))
		}
	})
	require.ErrorContains(t, cp.RestoreEtcd(t.Context()), "call SaveEtcd first")
	namespace := controlplane.Namespace(t, cp)
	c := newClient(t, cp)
	named := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	kept, changed, later := named("deleted"), named("changed"), named("later")
	require.NoError(t, errors.Join(c.Create(t.Context(), kept), c.Create(t.Context(), changed)))
	kubectl(t, cp, namespace, "create", "deployment", "web", "--image=web", "--replicas=1")
	kubectl(t, cp, namespace, "rollout", "status", "deployment/web", "--timeout=5m")
	require.NoError(t, cp.SaveEtcd(t.Context()))

	before := changed.ResourceVersion
	changed.Data = map[string]string{"changed": "later"}
	require.NoError(t, errors.Join(c.Delete(t.Context(), kept), c.Update(t.Context(), changed), c.Create(t.Context(), later)))
	kubectl(t, cp, namespace, "scale", "deployment", "web", "--replicas=2")
	require.NoError(t, cp.RestoreEtcd(t.Context()))

	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(changed), changed))
	require.Equal(t, before, changed.ResourceVersion)
	require.Empty(t, changed.Data)
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(later), later)))
	kubectl(t, cp, namespace, "scale", "deployment", "web", "--replicas=3")
	kubectl(t, cp, namespace, "rollout", "status", "deployment/web", "--timeout=5m")
}

func TestWriteLogs(t *testing.T) {
	var logs strings.Builder
	require.NoError(t, shared(t).WriteLogs(&logs))
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		assert.Contains(t, logs.String(), "==> "+program+" <==\n")
	}
}
