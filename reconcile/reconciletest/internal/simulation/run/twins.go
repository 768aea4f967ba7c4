package run

import (
	"context"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/result"
)

// TwinSuffix ends the namespace of a twin.
const TwinSuffix = "-twin"

// RunWithTwins runs the scenario without faults. Each object of a namespace that is there from the beginning, and each that the user creates, has a twin of
// the same name in another namespace. The user neither changes nor deletes the twins, and the scenario's own checks are not made.
func (s *Scenario) RunWithTwins(t *testing.T) *result.Result {
	unchecked := *s
	unchecked.Finally, unchecked.Always, unchecked.Actions = nil, nil, slices.Clone(s.Actions)
	for i := range unchecked.Actions {
		unchecked.Actions[i].Then = nil
	}
	return unchecked.runReference(t, func(of *script) {
		of.twins = true
		of.perform()
	})
}

// createTwin creates the twin of an object, if the object has a namespace. A twin that is refused is left out.
func (s *script) createTwin(ctx context.Context, c client.Client, obj client.Object) {
	namespaced, err := c.IsObjectNamespaced(obj)
	if err != nil || !namespaced || obj.GetNamespace() == "" {
		return
	}
	createTwinNamespace(ctx, c, obj.GetNamespace())
	twin := obj.DeepCopyObject().(client.Object)
	twin.SetNamespace(obj.GetNamespace() + TwinSuffix)
	_ = createWithStatus(ctx, c, twin)
}

// createTwinNamespace creates the namespace of twins, with the labels and annotations of the other one, unless it exists.
func createTwinNamespace(ctx context.Context, c client.Client, name string) {
	twin, of := &corev1.Namespace{}, &corev1.Namespace{}
	if c.Get(ctx, client.ObjectKey{Name: name}, of) == nil {
		twin.Labels, twin.Annotations = maps.Clone(of.Labels), maps.Clone(of.Annotations)
	}
	twin.Name = name + TwinSuffix
	_ = c.Create(ctx, twin)
}
