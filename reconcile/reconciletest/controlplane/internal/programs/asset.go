package programs

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

var minorVersion = regexp.MustCompile(`v?(\d+\.\d+)\.\d+`)

// asset returns the path of a program in the folder KUBEBUILDER_ASSETS of setup-envtest. found is true only if the program has the wanted
// minor version. For the programs of Kubernetes, that is the minor version of version. For etcd and kwok it is the pinned one.
func asset(ctx context.Context, p Program, version string) (path string, found bool) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		return "", false
	}
	if !strings.HasPrefix(p.Package, kubernetesModule+"/") {
		version = versionIn(pinnedMod, moduleOf(p))
	}
	path, err := filepath.Abs(filepath.Join(folder, p.Name))
	if err != nil {
		return "", false
	}
	ask := []string{"--version"}
	if p.Name == Kubectl {
		ask = []string{"version", "--client"}
	}
	output, err := exec.CommandContext(ctx, path, ask...).Output()
	if err != nil {
		return "", false
	}
	have := minorVersion.FindSubmatch(output)
	want := minorVersion.FindStringSubmatch(version)
	return path, have != nil && want != nil && string(have[1]) == want[1]
}

// moduleOf returns the module of a program that does not belong to Kubernetes: etcd or kwok.
func moduleOf(p Program) string {
	if p.Name == Kwok {
		return kwokModule
	}
	return etcdModule
}
