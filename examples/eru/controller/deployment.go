package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	eruv1 "github.com/opblocks/opblocks/examples/eru/api/v1"
	"github.com/opblocks/opblocks/reconcile"
)

// createEru is the step that creates the Eru that a Deployment requests by its annotation. The rest is done in passes over
// the Eru.
func createEru(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	if d.Annotations[eruv1.AnnotationEru] != "true" {
		return nil
	}
	var existing eruv1.Eru
	switch err := c.Get(ctx, client.ObjectKeyFromObject(d), &existing, client.UnsafeDisableDeepCopy); {
	case err == nil && existing.DeploymentName() != d.Name:
		return reconcile.Stalled("CreateEruFailed", fmt.Errorf("the Eru %s is there already, for Deployment %s: delete it, or create one of another name",
			existing.Name, existing.DeploymentName()))
	case !apierrors.IsNotFound(err):
		return err
	}
	owner, err := reconcile.OwnerReference(c, d)
	if err != nil {
		return err
	}
	eru := eruv1.NewEru(d.Namespace, d.Name)
	eru.OwnerReferences = []metav1.OwnerReference{owner}
	return reconcile.WithReason("CreateEruFailed", c.Create(ctx, eru))
}

// enqueueSameName enqueues the Deployment of the same name: when an Eru is deleted, it may have to be created again.
func enqueueSameName(_ context.Context, _ client.Reader, obj *eruv1.Eru) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}
