// Package programs builds programs from Go modules into the user's cache: the programs of a real Kubernetes control
// plane, and the supervisor that runs them.
//
// `go build` builds them from their ordinary modules. The files k8s.mod and k8s.sum pin the versions. They are copies of go.mod and go.sum
// in hack/k8s. That folder is a module of its own, so users of this module do not download it.
//
// A program of setup-envtest in the folder KUBEBUILDER_ASSETS is used instead if it has the same minor version.
package programs

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
	kwokModule       = "sigs.k8s.io/kwok"
)

// The names of the programs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kwok              = "kwok"
	Kubectl           = "kubectl"
)

// all has the programs in the order in which they are built.
var all = []Program{
	{Etcd, etcdModule},
	{APIServer, kubernetesModule + "/cmd/kube-apiserver"},
	{ControllerManager, kubernetesModule + "/cmd/kube-controller-manager"},
	{Scheduler, kubernetesModule + "/cmd/kube-scheduler"},
	{Kwok, kwokModule + "/cmd/kwok"},
	{Kubectl, kubernetesModule + "/cmd/kubectl"},
}

// Names returns the names of all programs, in the order in which they are built.
func Names() []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}

// Ensure returns the paths of the named programs of a version of Kubernetes, by name. It builds the missing ones. The first time this takes
// some minutes. It reports its progress on standard error. Only one call builds at a time, even in several processes. [Version] says which
// version an empty version means.
func Ensure(ctx context.Context, version string, names ...string) (map[string]string, error) {
	version, err := Version(version)
	if err != nil {
		return nil, err
	}
	pinned := kubernetes(pinnedVersion())
	wanted := pinned
	if version != pinned.Name {
		wanted = kubernetes(version)
	}
	paths := map[string]string{}
	missing := map[*Module][]string{}
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Program) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown program %q: choose from %s", name, strings.Join(Names(), ", "))
		}
		if path, found := asset(ctx, all[i], version); found {
			paths[name] = path
			continue
		}
		module := wanted
		if name == Kwok {
			module = pinned // kwok is a client: it works with every version of the API server, but compiles with few versions of its modules
		}
		missing[module] = append(missing[module], name)
	}
	for _, module := range slices.Compact([]*Module{wanted, pinned}) {
		built, err := module.Ensure(ctx, missing[module]...)
		if err != nil {
			return nil, err
		}
		maps.Copy(paths, built)
	}
	return paths, nil
}

// Assets returns a folder with the programs etcd, kube-apiserver and kubectl, which envtest runs. It builds what is
// missing.
func Assets(ctx context.Context, version string) (folder string, err error) {
	names := []string{Etcd, APIServer, Kubectl}
	paths, err := Ensure(ctx, version, names...)
	if err != nil {
		return "", err
	}
	folder = filepath.Dir(paths[Etcd])
	if filepath.Dir(paths[APIServer]) == folder && filepath.Dir(paths[Kubectl]) == folder {
		return folder, nil
	}
	// KUBEBUILDER_ASSETS has only some of them.
	if version, err = Version(version); err != nil {
		return "", err
	}
	built, err := kubernetes(version).Ensure(ctx, names...)
	return filepath.Dir(built[Etcd]), err
}
