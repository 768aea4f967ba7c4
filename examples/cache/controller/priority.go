package controller

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
)

// priorityClass returns the PriorityClass of a Cache, or nil if spec.priority is unset. It is cluster-scoped. Its value is
// immutable, so a change recreates it.
func priorityClass(c *storev1alpha1.Cache) *schedulingv1.PriorityClass {
	if c.Spec.Priority == nil {
		return nil
	}
	p := &schedulingv1.PriorityClass{ObjectMeta: ownedresources.ObjectMeta(c), Value: *c.Spec.Priority}
	p.Name = priorityClassName(c)
	p.Description = "Priority of the pods of Cache " + c.Namespace + "/" + c.Name
	return p
}

// priorityClassName returns a name that no other Cache has: a namespace contains no dot.
func priorityClassName(c *storev1alpha1.Cache) string { return c.Namespace + "." + c.Name }
