package ownedresources

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collectorsTime is what the garbage collector has for an orphan. It takes seconds, but where its watch broke while an
// owner was deleted and made anew under its name, it takes the new one for the old and never comes.
const collectorsTime = time.Minute

// orphanError is a child of a deleted namesake of the owner.
type orphanError struct{ *WaitingError }

func (e orphanError) Unwrap() error { return e.WaitingError }

// orphans remembers since when children of deleted namesakes have been in the way.
type orphans struct {
	clock clock.PassiveClock
	mu    sync.Mutex
	since map[types.UID]time.Time
}

func newOrphans(c clock.PassiveClock) *orphans {
	return &orphans{clock: c, since: map[types.UID]time.Time{}}
}

// left is how long the garbage collector still has for one.
func (o *orphans) left(uid types.UID) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	since, known := o.since[uid]
	if !known {
		since = now
		o.since[uid] = now
	}
	return since.Add(collectorsTime).Sub(now)
}

// forget is for an object that is gone.
func (o *orphans) forget(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.since, uid)
}

// collect does the garbage collector's work when its time is over: it deletes an object whose only owner is gone. The
// event of that brings the pass that creates ours.
func (a *applier) collect(ctx context.Context, w *wanted, live client.Object, orphan orphanError) error {
	waits := *orphan.WaitingError
	if waits.after = max(0, a.orphans.left(live.GetUID())); waits.after > 0 {
		return &waits
	}
	waits.after = collectorsTime
	if len(live.GetOwnerReferences()) != 1 || live.GetDeletionTimestamp() != nil {
		return &waits
	}
	switch current, err := a.isCurrent(ctx, w.owner); {
	case err != nil:
		return err
	case !current:
		return &waits
	}
	uid, version := live.GetUID(), live.GetResourceVersion()
	err := w.owner.client.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s, whose owner is gone: %w", w, err)
	}
	a.tell(w.owner, w.kind, live, deedDeleted, "its owner is gone")
	return &waits
}

// isCurrent asks the API server whether it is the owner that lives, and not its namesake: the cache may be behind.
func (a *applier) isCurrent(ctx context.Context, o *owner) (bool, error) {
	live, err := a.readOwner(ctx, o)
	return live != nil && live.GetUID() == o.reference.UID, err
}
