package run

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TwinSuffix is appended to a namespace. The result is the namespace of the twins: copies of the user's objects with the same names.
const TwinSuffix = "-twin"

// createTwin creates a copy of the object in the other namespace, if the object has a namespace. If the API server refuses the copy, there
// is none.
func createTwin(ctx context.Context, c client.Client, obj client.Object) {
	namespaced, err := c.IsObjectNamespaced(obj)
	if err != nil || !namespaced || obj.GetNamespace() == "" {
		return
	}
	createTwinNamespace(ctx, c, obj.GetNamespace())
	twin := obj.DeepCopyObject().(client.Object)
	twin.SetNamespace(obj.GetNamespace() + TwinSuffix)
	_ = createWithStatus(ctx, c, twin)
}

// createTwinNamespace creates the namespace of the copies if it does not exist. It has the labels and annotations of the original
// namespace.
func createTwinNamespace(ctx context.Context, c client.Client, name string) {
	twin, of := &corev1.Namespace{}, &corev1.Namespace{}
	if c.Get(ctx, client.ObjectKey{Name: name}, of) == nil {
		twin.Labels, twin.Annotations = maps.Clone(of.Labels), maps.Clone(of.Annotations)
	}
	twin.Name = name + TwinSuffix
	_ = c.Create(ctx, twin)
}
