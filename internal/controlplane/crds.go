package controlplane

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// InstallCRDs creates or updates the CustomResourceDefinitions in these files and folders, and returns when the API
// server serves them.
func (cp *ControlPlane) InstallCRDs(ctx context.Context, paths ...string) error {
	_, err := envtest.InstallCRDs(cp.Config(), envtest.CRDInstallOptions{
		Paths:              paths,
		ErrorIfPathMissing: true,
		MaxTime:            startTimeout,
		PollInterval:       pollInterval,
	})
	if err != nil {
		return fmt.Errorf("install the CustomResourceDefinitions in %s: %w", strings.Join(paths, ", "), err)
	}
	if cp.settings.controllers {
		// The garbage collector looks for new kinds every 30 seconds only; a restarted one knows them from the start.
		return cp.RestartControllerManager(ctx)
	}
	return ctx.Err()
}
