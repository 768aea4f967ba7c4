package ownedresources

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create sends a POST. Unlike a server-side apply that creates, it can never take over
// an object of that name which a stale or selector-limited cache does not show.
func (a *applier) create(ctx context.Context, w wanted) (Result, error) {
	obj := w.marked(created)
	err := w.owner.client.Create(ctx, obj, w.owner.fieldManager, client.FieldValidation(metav1.FieldValidationStrict))
	switch {
	case err == nil:
		a.written(w, obj)
		a.tell(w.owner, w.kind, obj, deedCreated, "")
		return Result{Object: obj, Operation: Created}, nil
	case apierrors.IsAlreadyExists(err):
		return a.unseen(ctx, w, err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return Result{}, &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
			"%s is not created, since its namespace is being deleted", &w)}
	}
	return Result{}, fmt.Errorf("create %s: %w", &w, withoutValues(err))
}

// unseen goes on with an object that exists although the cache does not show it: one that
// was created a moment ago, by us or by somebody else, or that the cache's selector leaves out.
func (a *applier) unseen(ctx context.Context, w wanted, exists error) (Result, error) {
	live, err := a.readLive(ctx, w)
	if apierrors.IsNotFound(err) { // deleted in between: a lost race
		return Result{}, fmt.Errorf("create %s: %w", &w, exists)
	}
	if err != nil {
		return Result{}, fmt.Errorf("read %s, which exists but is not in the cache: %w", &w, err)
	}
	result, err := a.update(ctx, w, live)
	if err == nil && a.guard.clock.Since(live.GetCreationTimestamp().Time) > cacheDelay {
		err = &NotCachedError{Kind: w.kind.gvk.Kind, Name: client.ObjectKeyFromObject(live)}
	}
	return result, err
}

// cacheDelay is how far a cache may be behind before it is taken for one that will never show
// an object.
const cacheDelay = time.Minute

// written remembers the answer to a write, for as long as the cache is behind, and where
// the API server did not take our word for it.
func (a *applier) written(w wanted, answer client.Object) {
	a.writes.Record(answer)
	a.recreated.written(&w)
	a.settled.record(w.kind.gvk.Kind, answer.GetUID(), w.kind.plan.Differences(w.object, answer))
}
