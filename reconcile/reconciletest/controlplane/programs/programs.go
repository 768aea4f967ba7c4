// Package programs provides the programs of a real Kubernetes control plane.
//
// It builds them by `go build` from their ordinary Go modules, pinned in hack/k8s/go.mod, into bin/k8s of the
// repository. A program of setup-envtest in the folder KUBEBUILDER_ASSETS is used instead if it has the same minor
// version.
package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
	kwokModule       = "sigs.k8s.io/kwok"
	ownModule        = "github.com/opblocks/opblocks"
)

// program is a program to build from source, a package of a module.
type program struct{ name, module, source string }

// executable returns the name of the file that `go build` writes: the last element of the package's path that is no version.
func (p program) executable() string {
	name := path.Base(p.source)
	if majorVersion.MatchString(name) {
		name = path.Base(path.Dir(p.source))
	}
	return name
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

var all = []program{
	{"supervise", ownModule, ownModule + "/reconcile/reconciletest/controlplane/supervise"},
	{"etcd", etcdModule, etcdModule},
	{"kube-apiserver", kubernetesModule, kubernetesModule + "/cmd/kube-apiserver"},
	{"kube-controller-manager", kubernetesModule, kubernetesModule + "/cmd/kube-controller-manager"},
	{"kube-scheduler", kubernetesModule, kubernetesModule + "/cmd/kube-scheduler"},
	{"kwok", kwokModule, kwokModule + "/cmd/kwok"},
	{"kubectl", kubernetesModule, kubernetesModule + "/cmd/kubectl"},
}

// Names returns the names of all programs, in the order in which they are built.
func Names() []string {
	var names []string
	for _, p := range all {
		names = append(names, p.name)
	}
	return names
}

// Ensure returns the paths of the named programs, by name. It builds those that are missing or out of date, which takes
// some minutes the first time, and reports its progress on standard error. Concurrent calls wait for each other, also
// those of other processes.
func Ensure(ctx context.Context, names ...string) (map[string]string, error) {
	root, err := repositoryRoot()
	if err != nil {
		return nil, err
	}
	c, err := newCheckout(root)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	var missing []program
	for _, name := range names {
		i := slices.IndexFunc(all, func(p program) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown program %q: choose from %s", name, strings.Join(Names(), ", "))
		}
		paths[name] = c.bin(name)
		if asset, found := c.asset(ctx, all[i]); found {
			paths[name] = asset
		} else if done, err := c.upToDate(all[i]); err != nil {
			return nil, err
		} else if !done {
			missing = append(missing, all[i])
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	return paths, c.build(ctx, missing)
}

// repositoryRoot returns the root of the checkout around the working directory, also in a nested module.
func repositoryRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if strings.HasPrefix(string(content), "module "+ownModule+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a checkout of %s; run from within one", start, ownModule)
		}
	}
}
