package controlplane_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/opblocks/opblocks/internal/controlplane"
)

const ownerVariable = "CONTROLPLANE_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) == "" {
		os.Exit(m.Run())
	}
	cp, err := controlplane.Start(context.Background(), controlplane.WithControllers())
	if err != nil {
		panic(err)
	}
	fmt.Println(filepath.Dir(cp.Kubeconfig()))
	select {} // until the test kills this process
}

func TestNothingOutlivesAKilledProcess(t *testing.T) {
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

// processesIn finds the programs of a control plane by its folder, which all their command lines name.
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
