package controlplane

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/opblocks/opblocks/internal/controlplane/programs"
)

// Kubectl runs kubectl as a cluster administrator and returns what it prints on standard output. What it prints on
// standard error is in the error.
func (cp *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	paths, err := programs.Ensure(ctx, "kubectl")
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, paths["kubectl"], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cp.Kubeconfig(), "KUBECACHEDIR="+cp.file("kubectl"))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}
