package run

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TwinSuffix ends the namespace of a twin.
const TwinSuffix = "-twin"

// createTwin creates the twin of an object, if the object has a namespace. A twin that is refused is left out.
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

// createTwinNamespace creates the namespace of twins, unless it exists. It gets the labels and annotations of the namespace of the original
// objects.
func createTwinNamespace(ctx context.Context, c client.Client, name string) {
	twin, of := &corev1.Namespace{}, &corev1.Namespace{}
	if c.Get(ctx, client.ObjectKey{Name: name}, of) == nil {
		twin.Labels, twin.Annotations = maps.Clone(of.Labels), maps.Clone(of.Annotations)
	}
	twin.Name = name + TwinSuffix
	_ = c.Create(ctx, twin)
}
