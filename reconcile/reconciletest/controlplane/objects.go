package controlplane

import (
	"context"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// defaultAccount returns a check for the default ServiceAccount, which the controller manager creates. Without it no
// pod can be created.
func (cp *ControlPlane) defaultAccount(namespace string) func(context.Context) error {
	return func(ctx context.Context) error {
		key := client.ObjectKey{Namespace: namespace, Name: "default"}
		return cp.client.Get(ctx, key, &corev1.ServiceAccount{})
	}
}

// InstallCRDs creates or updates the CustomResourceDefinitions in these files and folders, and returns when the API
// server serves them. Subfolders are not read. It returns an error if a path does not exist or has no
// CustomResourceDefinition.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, paths ...string) error {
	if err := cp.installCRDs(paths...); err != nil {
		return err
	}
	if cp.options.hasControllers() {
		// The garbage collector looks for new kinds every 30 seconds only. After a restart it has them at once.
		return cp.RestartControllerManager(ctx)
	}
	return ctx.Err()
}

func (cp *ControlPlane) installCRDs(paths ...string) error {
	if err := checkCRDs(paths); err != nil {
		return err
	}
	_, err := envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{
		Paths:              paths,
		ErrorIfPathMissing: true,
		MaxTime:            startTimeout,
		PollInterval:       pollInterval,
	})
	if err != nil {
		return fmt.Errorf("install the CustomResourceDefinitions in %s: %w", strings.Join(paths, ", "), err)
	}
	return nil
}

// checkCRDs returns an error if one of these files and folders does not exist or has no CustomResourceDefinition.
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
