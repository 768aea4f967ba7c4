package ownedresources

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const reasonRecreating = "Recreating"

// recreation names an object whose change was refused.
type recreation struct {
	kind *kind
	name types.NamespacedName
}

// recreate deletes an object of which the API server refuses a change; the event of its
// deletion brings the pass that creates it. Nothing in the refusal tells an immutable field
// from a wrong one for certain, so the new object is tried first, under another name.
func (a *applier) recreate(ctx context.Context, w wanted, live client.Object, refusal error) error {
	is := recreation{kind: w.kind, name: client.ObjectKeyFromObject(w.object)}
	if last, ok := a.recreated.Load(is); ok && last == w.sum {
		return fmt.Errorf("recreated once for this change already: %w", refusal)
	}
	if _, err := a.trial(ctx, w, ""); err != nil {
		return errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", &w, err))
	}
	uid := live.GetUID()
	err := w.owner.client.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete %s to create it anew: %w", &w, err)
	}
	a.recreated.Store(is, w.sum)
	a.writes.Forget(live, is.name)
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is created anew, since a field of it cannot be changed", &w)}
}
