// Package berth sets up a field index for a reconciler of another package.
package berth

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/harbor/internal/index"
)

// Setup is called by a set-up.
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, index.Phase, func(client.Object) []string { return nil })
}
