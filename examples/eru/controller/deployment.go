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

// createEru gives a Deployment the Eru that its annotation asks for. All else is done for the Eru.
func createEru(ctx context.Context, c client.Client, d *appsv1.Deployment) error {
	if d.Annotations[eruv1.AnnotationEru] != "true" {
		return nil
	}
	var there eruv1.Eru
	switch err := c.Get(ctx, client.ObjectKeyFromObject(d), &there, client.UnsafeDisableDeepCopy); {
	case err == nil && there.DeploymentName() != d.Name:
		return reconcile.Stalled("CreateEruFailed", fmt.Errorf("the Eru %s is there already, for Deployment %s: delete it, or create one of another name",
			there.Name, there.DeploymentName()))
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

func sameName(_ context.Context, _ client.Reader, obj *eruv1.Eru) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}
