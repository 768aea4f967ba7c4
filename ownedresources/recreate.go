package ownedresources

import (
	"context"
	"errors"
	"fmt"

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
func (a *applier) recreate(ctx context.Context, w wanted, refusal error) error {
	is := recreation{kind: w.kind, name: client.ObjectKeyFromObject(w.object)}
	live, err := a.readLive(ctx, w) // the cache's may have another owner by now
	if err != nil {
		return fmt.Errorf("read %s: %w", &w, err)
	}
	if err := w.owner.owns(&w, live); err != nil {
		return err
	}
	if last, ok := a.recreated.Load(is); ok && last == w.sum {
		return fmt.Errorf("recreated once for this change already: %w", refusal)
	}
	if _, err := a.trial(ctx, w, ""); err != nil {
		return errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", &w, err))
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	err = w.owner.client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s to create it anew: %w", &w, err)
	}
	a.recreated.Store(is, w.sum)
	a.writes.Forget(live, is.name)
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is created anew, since a field of it cannot be changed", &w)}
}
