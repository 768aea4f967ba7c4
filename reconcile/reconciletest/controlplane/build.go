package controlplane

import (
	"context"

	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/internal/programs"
	"github.com/opblocks/opblocks/reconcile/reconciletest/controlplane/supervisor"
)

// Build builds the programs that a control plane with these options needs, and kubectl, and returns a folder with etcd,
// kube-apiserver and kubectl, as envtest wants it:
//
//	assets, err := controlplane.Build(ctx, controlplane.Options{})
//	...
//	environment := &envtest.Environment{BinaryAssetsDirectory: assets}
//
// The first build takes 3 to 4 minutes on 2 processors, and needs the go command, the network, and 6 GB of disk with Go's
// caches. What is built stays in the user's cache, in the folder opblocks/controlplane, about 420 MB for a version of
// Kubernetes. Later calls return at once and work offline. While one process builds, others wait for it. Progress is
// reported on standard error.
//
// If the folder KUBEBUILDER_ASSETS has programs of the same minor version, these are used instead. The environment variable
// OPBLOCKS_CACHE names another folder than opblocks in the user's cache (see [os.UserCacheDir]).
//
// It returns an error if an option is wrong (see [Options]), the go command is missing, Go is too old,
// a module cannot be downloaded, the disk is full, the cache cannot be written, or the context is done. The message
// says what to do. Nothing half-built is left behind.
func Build(ctx context.Context, options Options) (assets string, err error) {
	if err := options.check(); err != nil {
		return "", err
	}
	if _, err := programs.Ensure(ctx, options.Version, append(options.programs(), kubectl)...); err != nil {
		return "", err
	}
	if err := supervisor.Build(ctx); err != nil {
		return "", err
	}
	return programs.Assets(ctx, options.Version)
}
