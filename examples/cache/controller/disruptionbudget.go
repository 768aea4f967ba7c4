package controller

import (
	policyv1 "k8s.io/api/policy/v1"

	storev1alpha1 "github.com/opblocks/opblocks/examples/cache/api/v1alpha1"
	"github.com/opblocks/opblocks/ownedresources"
)

// disruptionBudget returns the PodDisruptionBudget of a Cache: nodes are drained one pod at a time.
func disruptionBudget(c *storev1alpha1.Cache) *policyv1.PodDisruptionBudget {
	return ownedresources.NewPodDisruptionBudget(c, nil)
}
