package controller

import (
	policyv1 "k8s.io/api/policy/v1"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
)

// disruptionBudget returns the PodDisruptionBudget of an App, or nil if spec.minAvailable is unset.
func disruptionBudget(app *appv1.App) *policyv1.PodDisruptionBudget {
	if app.Spec.MinAvailable == nil {
		return nil
	}
	budget := ownedresources.NewPodDisruptionBudget(app, podLabels(app))
	budget.Spec.MaxUnavailable, budget.Spec.MinAvailable = nil, app.Spec.MinAvailable
	return budget
}
