package controller

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
	"github.com/opblocks/opblocks/ownedresources"
)

// disruptionBudget returns the PodDisruptionBudget of an App, or nil if spec.minAvailable is unset.
func disruptionBudget(app *appv1.App) *policyv1.PodDisruptionBudget {
	if app.Spec.MinAvailable == nil {
		return nil
	}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: ownedresources.NewService(app, podLabels(app)).ObjectMeta, // name and recommended labels
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: app.Spec.MinAvailable,
			Selector:     &metav1.LabelSelector{MatchLabels: podLabels(app)},
		},
	}
}
