package programs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

var minorVersion = regexp.MustCompile(`v?(\d+\.\d+)\.\d+`)

// asset finds a program of setup-envtest whose minor version is the pinned one.
func (w *workshop) asset(ctx context.Context, p program) (path string, found bool) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		return "", false
	}
	path = filepath.Join(folder, p.name)
	ask := []string{"--version"}
	if p.name == "kubectl" {
		ask = []string{"version", "--client"}
	}
	output, err := exec.CommandContext(ctx, path, ask...).Output()
	if err != nil {
		return "", false
	}
	have := minorVersion.FindSubmatch(output)
	want := minorVersion.FindStringSubmatch(w.version(p.module))
	return path, have != nil && want != nil && string(have[1]) == want[1]
}
