package controller

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile/external"
)

// Events returns the predicate of the controller's wiring.
func (o *Operator) Events() predicate.Predicate { return o.events() }

// EnqueueSameUser returns which DatabaseUsers a change of u enqueues.
func (o *Operator) EnqueueSameUser(ctx context.Context, r client.Reader, u *userv1alpha1.DatabaseUser) []ctrl.Request {
	return external.New(o.resource()).Waiting(ctx, r, u)
}

// MaxCircle is the largest number of DatabaseUsers in a circle that is resolved.
const MaxCircle = maxCircle
