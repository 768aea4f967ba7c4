package controller

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/conditions"
	appv1 "github.com/opblocks/opblocks/examples/app/api/v1"
)

// ownConditions are the condition types of the App itself. All others are copied from the Deployment.
var ownConditions = []appsv1.DeploymentConditionType{
	conditions.Ready, conditions.Reconciling, conditions.Stalled, conditionServiceReady,
}

// updateStatus is the step that copies the status of the Deployment into the status of the App. It reads the Deployment
// from the cache. If the cache is behind, the event of the Deployment triggers another pass.
func updateStatus(ctx context.Context, c client.Client, app *appv1.App) error {
	var d appsv1.Deployment
	if err := c.Get(ctx, client.ObjectKeyFromObject(app), &d, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the Deployment: %w", err)
	}
	if !metav1.IsControlledBy(&d, app) {
		d = appsv1.Deployment{}
	}
	all := slices.SortedFunc(slices.Values(d.Status.Conditions), // their order changes
		func(a, b appsv1.DeploymentCondition) int { return cmp.Compare(a.Type, b.Type) })
	for i := range all { // a Deployment's condition may lack times, and the schema of an App refuses null
		for _, at := range []*metav1.Time{&all[i].LastUpdateTime, &all[i].LastTransitionTime} {
			if at.IsZero() {
				*at = d.CreationTimestamp
			}
		}
	}
	for _, condition := range app.Status.Conditions {
		if slices.Contains(ownConditions, condition.Type) {
			all = append(all, condition)
		}
	}
	generation := app.Status.ObservedGeneration
	// If appsv1.DeploymentStatus gets a new field, this does not compile until the App's DeploymentStatus has the field too.
	app.Status.DeploymentStatus = appv1.DeploymentStatus(d.Status)
	app.Status.ObservedGeneration, app.Status.Conditions = generation, all
	app.Status.Selector = labels.Set(podLabels(app)).String()
	return nil
}
