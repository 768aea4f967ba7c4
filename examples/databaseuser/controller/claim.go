package controller

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	userv1alpha1 "github.com/opblocks/opblocks/examples/databaseuser/api/v1alpha1"
	"github.com/opblocks/opblocks/reconcile/external"
)

// IndexUsers returns the values of a DatabaseUser in [UserIndex]: the specified user name and the recorded one.
func IndexUsers(obj client.Object) []string {
	u, ok := obj.(*userv1alpha1.DatabaseUser)
	if !ok {
		return nil
	}
	return slices.Compact([]string{u.Spec.User, u.Status.User})
}

// others returns the DatabaseUsers of a user name that this operator serves.
func (o *Operator) others(ctx context.Context, r client.Reader, _ *userv1alpha1.DatabaseUser, name string) ([]*userv1alpha1.DatabaseUser, error) {
	var all userv1alpha1.DatabaseUserList
	if err := r.List(ctx, &all, client.MatchingFields{UserIndex: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var others []*userv1alpha1.DatabaseUser
	for i := range all.Items {
		if o.Serves(&all.Items[i]) {
			others = append(others, &all.Items[i])
		}
	}
	return others, nil
}

// maxCircle is the largest number of DatabaseUsers in a circle that is resolved.
const maxCircle = external.MaxCircle

// claimed returns the wait for the DatabaseUser that has the better claim to the user name.
func (o *Operator) claimed(err *external.ClaimedError) error {
	message := fmt.Sprintf(betterClaim, err.By)
	if err.Endless {
		message += fmt.Sprintf("; more than %d DatabaseUsers wait for each other: if they do so in a circle, give one of them a name that nobody has", maxCircle)
	}
	return o.wait(reasonClaimed, "%s", message)
}

const betterClaim = "DatabaseUser %s has the better claim to the user name"
