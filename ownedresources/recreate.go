package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const reasonRecreating = "Recreating"

// recreated remembers for which change of its spec a child was last deleted, to create it anew.
type recreated struct {
	mu     sync.Mutex
	byName map[recreation]sum
}

// recreation names an object whose change was refused.
type recreation struct {
	owner types.UID
	kind  *kind
	name  types.NamespacedName
}

func (w *wanted) recreation() recreation {
	return recreation{owner: w.owner.reference.UID, kind: w.kind, name: client.ObjectKeyFromObject(w.object)}
}

func (r *recreated) is(w *wanted) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.byName[w.recreation()]
	return ok && last == w.sum
}

func (r *recreated) set(w *wanted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byName == nil {
		r.byName = map[recreation]sum{}
	}
	r.byName[w.recreation()] = w.sum
}

// written ends what was remembered once the object stands for another change.
func (r *recreated) written(w *wanted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.byName[w.recreation()]; ok && last != w.sum {
		delete(r.byName, w.recreation())
	}
}

// forget is for an owner that is gone.
func (r *recreated) forget(owner types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.byName, func(is recreation, _ sum) bool { return is.owner == owner })
}

// recreate deletes an object of which the API server refuses a change; the event of its
// deletion brings the pass that creates it. Nothing in the refusal tells an immutable field
// from a wrong one for certain, so the new object is tried first, under another name.
func (a *applier) recreate(ctx context.Context, w wanted, refusal error) error {
	live, err := a.readLive(ctx, w) // the cache's may have another owner by now
	if err != nil {
		return fmt.Errorf("read %s: %w", &w, err)
	}
	if err := w.owner.owns(&w, live); err != nil {
		return err
	}
	if a.recreated.is(&w) {
		return fmt.Errorf("recreated once for this change already: %w", refusal)
	}
	if _, err := a.trial(ctx, w, ""); err != nil {
		return errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", &w, err))
	}
	if err := a.confirm(ctx, w.owner); err != nil {
		return err
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	err = w.owner.client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s to create it anew: %w", &w, err)
	}
	a.recreated.set(&w)
	a.tell(w.owner, w.kind, live, deedRecreated, "")
	a.writes.Forget(live, client.ObjectKeyFromObject(live))
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is created anew, since a field of it cannot be changed", &w)}
}
