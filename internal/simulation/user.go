package simulation

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/simulation/kinds"
	"github.com/opblocks/opblocks/internal/simulation/state"
)

// userClient is the client of the user's actions. What the other writer did to an object never makes an action fail.
type userClient struct {
	client.WithWatch
	run    *Run
	locked bool // the caller of the action holds the run's lock
}

// withLock calls do with the run's lock held.
func (u *userClient) withLock(do func()) {
	if !u.locked {
		u.run.mu.Lock()
		defer u.run.mu.Unlock()
	}
	do()
}

// Delete deletes the object. It is a point at which the finalizer of another controller can be injected. The other writer
// removes its own finalizer at once, since the action may create an object of the same name next.
func (u *userClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	u.withLock(func() { u.run.reachDeletion(obj, u.locked) })
	err := u.WithWatch.Delete(ctx, obj, opts...)
	if err == nil {
		u.withLock(u.run.releaseFinalizers)
	}
	return err
}

// Create creates the object. If one of that name is held by another controller's finalizer, that is removed first.
func (u *userClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	asked := obj.DeepCopyObject().(client.Object)
	err := u.WithWatch.Create(ctx, obj, opts...)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	released := false
	u.withLock(func() { released = u.run.releaseHeld(asked) })
	if !released {
		return err
	}
	return u.WithWatch.Create(ctx, obj, opts...)
}

// heldObject is an object that the user deletes, and that another controller holds by a finalizer.
type heldObject struct {
	id  objectID
	obj *metav1.PartialObjectMetadata // as it was before the deletion
}

// isOurs reports whether the object had other finalizers, which are the operator's, when it was deleted.
func (h *heldObject) isOurs() bool { return len(h.obj.Finalizers) > 0 }

// reachDeletion notes that the user deletes an object, and lets another controller add a finalizer just before if that is
// planned. inPass is true if the action happens in the middle of a pass. The caller holds the lock.
func (r *Run) reachDeletion(obj client.Object, inPass bool) {
	gvk, err := apiutil.GVKForObject(obj, r.scenario.Scheme)
	if err != nil || r.processes.leader == nil {
		return
	}
	id := objectID{gvk, client.ObjectKeyFromObject(obj)}
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(gvk)
	if err := r.user.Get(r.context(), id.name, is); err != nil || is.DeletionTimestamp != nil {
		return
	}
	fault, at := r.plan.reach(point{name: "deletion of " + id.String(), deletion: true})
	if fault != kinds.ForeignFinalizer {
		return
	}
	held := is.DeepCopy()
	held.Finalizers = append(held.Finalizers, state.OtherControllerKey)
	if err := r.user.Patch(r.context(), held, client.MergeFrom(is)); err != nil {
		return // a kind whose finalizers cannot be set
	}
	r.held = append(r.held, heldObject{id, is})
	r.plan.noteInjected(fault, at)
	note := row{what: "  another controller: add a finalizer to " + id.String(), fault: fault}
	if inPass {
		r.trace.addBefore(note)
	} else {
		r.trace.add(note)
	}
}

// releaseHeld removes the other controller's finalizer from the object, or from all objects if it is nil. It reports whether
// it held one. The caller holds the lock.
func (r *Run) releaseHeld(obj client.Object) bool {
	released := false
	r.held = slices.DeleteFunc(r.held, func(h heldObject) bool {
		if obj != nil && h.id.name != client.ObjectKeyFromObject(obj) {
			return false
		}
		released = true
		r.release(&h)
		return true
	})
	return released
}

func (r *Run) release(h *heldObject) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(h.id.kind)
	err := r.user.Get(r.context(), h.id.name, now)
	i := slices.Index(now.Finalizers, state.OtherControllerKey)
	if err != nil || now.UID != h.obj.UID || i < 0 {
		r.failLocked(lostError("the finalizer "+state.OtherControllerKey, h.id))
		return
	}
	r.trace.add(row{what: "another controller: remove the finalizer of " + h.id.String()})
	before := now.DeepCopy()
	now.Finalizers = slices.Delete(slices.Clone(now.Finalizers), i, i+1)
	if err := r.user.Patch(r.context(), now, client.MergeFrom(before)); err != nil {
		r.failLocked(err)
	}
}

// releaseWhenQuiet ends the deletion of objects that another controller has held until the operator was quiet. It reports
// whether there were any. The run fails if the operator has removed its own finalizer, and its passes over the object fail.
func (r *Run) releaseWhenQuiet() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.held {
		if h := &r.held[i]; h.isOurs() {
			if err := r.heldError(h); err != nil {
				r.failLocked(err)
				return false
			}
		}
	}
	return r.releaseHeld(nil)
}
