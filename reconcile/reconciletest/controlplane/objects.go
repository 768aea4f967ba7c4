package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// CreateNamespace creates a namespace whose name begins with prefix, and returns its name when pods can be created in
// it. While the controllers are paused it returns an error.
func (cp *ControlPlane) CreateNamespace(ctx context.Context, prefix string) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if cp.options.hasControllers() {
		if err := cp.processes.failure(controllerManager); err != nil {
			return "", fmt.Errorf("create a namespace: %w", err)
		}
	}
	if err := cp.client.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("create a namespace: %w", err)
	}
	if !cp.options.hasControllers() {
		return namespace.Name, nil
	}
	return namespace.Name, cp.processes.wait(ctx, controllerManager, cp.defaultAccount(namespace.Name))
}

// defaultAccount returns a check that the default ServiceAccount of a namespace exists. The controller manager creates it. Without it no
// pod can be created.
func (cp *ControlPlane) defaultAccount(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		key := client.ObjectKey{Namespace: namespace, Name: "default"}
		return cp.client.Get(ctx, key, &corev1.ServiceAccount{})
	}
}

// InstallCRDs creates or updates the CustomResourceDefinitions in these files and folders, and returns when the API
// server serves them. Subfolders are not read. A conversion by [Webhooks] stays. It returns an error if a path does not
// exist or has no CustomResourceDefinition.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, paths ...string) error {
	if err := cp.installCRDs(ctx, paths...); err != nil {
		return err
	}
	return cp.showNewKinds(ctx)
}

// showNewKinds restarts the controller manager if controllers run. Its garbage collector looks for new kinds only every 30 seconds, and
// after a restart it finds them at once.
func (cp *ControlPlane) showNewKinds(ctx context.Context) error {
	if cp.options.hasControllers() {
		return cp.RestartControllerManager(ctx)
	}
	return ctx.Err()
}

func (cp *ControlPlane) installCRDs(ctx context.Context, paths ...string) error {
	return cp.installChangedCRDs(paths, func(crd *apiextensionsv1.CustomResourceDefinition) error {
		return keepConversion(ctx, cp.client, crd)
	})
}

// installChangedCRDs reads CustomResourceDefinitions, calls change with each, and creates or updates them. It returns when the API server
// serves them.
func (cp *ControlPlane) installChangedCRDs(paths []string, change func(*apiextensionsv1.CustomResourceDefinition) error) error {
	if err := checkCRDs(paths); err != nil {
		return err
	}
	files := envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true}
	err := envtest.ReadCRDFiles(&files)
	for _, crd := range files.CRDs {
		err = errors.Join(err, change(crd))
	}
	if err == nil {
		_, err = envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{CRDs: files.CRDs, MaxTime: startTimeout, PollInterval: pollInterval})
	}
	if err != nil {
		return fmt.Errorf("install the CustomResourceDefinitions in %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// checkCRDs returns an error if a path does not exist, or if a file or folder has no CustomResourceDefinition.
func checkCRDs(paths []string) error {
	for _, path := range paths {
		files := envtest.CRDInstallOptions{Paths: []string{path}, ErrorIfPathMissing: true}
		_, err := os.Stat(path) // ReadCRDFiles panics on an error other than "not found"
		if err == nil {
			err = envtest.ReadCRDFiles(&files)
		}
		if err != nil {
			return fmt.Errorf("install the CustomResourceDefinitions in %s: %w", path, err)
		}
		if len(files.CRDs) == 0 {
			return fmt.Errorf("no CustomResourceDefinition in %s: name the folder that has the YAML files themselves, "+
				"since subfolders are not read", path)
		}
	}
	return nil
}
