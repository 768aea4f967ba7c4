// Package index sets up field indexes apart from the reconcilers.
package index

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Setup is called by a main.
func Setup(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, "spec.nodeName", func(client.Object) []string { return nil })
}

// Unused is called by nobody.
func Unused(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, "spec.hostname", func(client.Object) []string { return nil })
}
