// Package index sets up field indexes apart from the reconcilers.
package index

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The fields.
const (
	Node  = "spec.nodeName"
	Host  = "spec.hostname"
	Zone  = "spec.zone"
	Phase = "status.phase"
)

// Setup is called by a main, and calls what nobody else can call.
func Setup(ctx context.Context, indexer client.FieldIndexer) error {
	if err := byNode(ctx, indexer); err != nil {
		return err
	}
	return ByHost(ctx, indexer)
}

func byNode(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, Node, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
}

// ByHost is called by Setup.
func ByHost(ctx context.Context, indexer client.FieldIndexer) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, Host, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.Hostname} })
}

// ByZone returns whether it is set up.
func ByZone(ctx context.Context, c cache.Cache, zones ...string) bool {
	return c.IndexField(ctx, &corev1.Pod{}, Zone, func(client.Object) []string { return zones }) == nil
}

// ByLabel has an argument that main alone has.
func ByLabel(ctx context.Context, indexer client.FieldIndexer, label string) error {
	return indexer.IndexField(ctx, &corev1.Pod{}, "metadata.labels."+label, func(o client.Object) []string { return []string{o.GetLabels()[label]} })
}
