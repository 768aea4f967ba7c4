package run

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/kinds"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/operator"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/plan"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/state"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/trace"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/world"
)

// holder is another controller. While its finalizer is on an object that the user deletes, the object stays. The run's lock guards it.
type holder struct {
	world    *world.World
	operator *operator.Operator
	held     []heldObject
}

// heldObject is an object that the user has deleted, and that stays because of the other controller's finalizer.
type heldObject struct {
	id  request.ObjectID
	obj *metav1.PartialObjectMetadata // as it was before the deletion
}

// isOurs reports whether the object had finalizers when it was deleted. These are the operator's.
func (h *heldObject) isOurs() bool { return len(h.obj.Finalizers) > 0 }

// reach is called just before the user deletes an object. If the fault is planned here, it adds the finalizer of another controller to the
// object. inPass is true if the action happens in the middle of a pass. The caller holds the lock.
func (h *holder) reach(obj client.Object, inPass bool) {
	gvk, err := apiutil.GVKForObject(obj, h.world.Scheme)
	if err != nil || h.operator.Leader == nil {
		return
	}
	gvk = h.world.Server.Canonical(gvk)
	id := request.ObjectID{Kind: gvk, Name: client.ObjectKeyFromObject(obj)}
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(gvk)
	if err := h.world.User.Get(context.Background(), id.Name, is); err != nil || is.DeletionTimestamp != nil {
		return
	}
	fault, at := h.world.Plan.Reach(plan.Point{Name: "deletion of " + id.String(), Deletion: true})
	if fault != kinds.ForeignFinalizer {
		return
	}
	held := is.DeepCopy()
	held.Finalizers = append(held.Finalizers, state.OtherControllerKey)
	if err := h.world.User.Patch(context.Background(), held, client.MergeFrom(is)); err != nil {
		return // a kind whose finalizers cannot be set
	}
	h.held = append(h.held, heldObject{id, is})
	h.world.Plan.NoteInjected(fault, at)
	note := trace.Row{What: "  another controller: add a finalizer to " + id.String(), Fault: fault}
	if inPass {
		h.world.Trace.AddBefore(note)
	} else {
		h.world.Trace.Add(note)
	}
}

// release removes the other controller's finalizer from the object. If obj is nil, it removes it from all objects. It reports whether it
// removed one. The caller holds the lock.
func (h *holder) release(obj client.Object) bool {
	released := false
	h.held = slices.DeleteFunc(h.held, func(held heldObject) bool {
		if obj != nil && held.id.Name != client.ObjectKeyFromObject(obj) {
			return false
		}
		released = true
		h.removeFinalizer(&held)
		return true
	})
	return released
}

// removeFinalizer removes the other controller's finalizer from one object.
func (h *holder) removeFinalizer(held *heldObject) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(held.id.Kind)
	err := h.world.User.Get(context.Background(), held.id.Name, now)
	i := slices.Index(now.Finalizers, state.OtherControllerKey)
	if err != nil || now.UID != held.obj.UID || i < 0 {
		h.world.Failures.AddLocked(world.LostError("the finalizer "+state.OtherControllerKey, held.id))
		return
	}
	h.world.Trace.Add(trace.Row{What: "another controller: remove the finalizer of " + held.id.String()})
	before := now.DeepCopy()
	now.Finalizers = slices.Delete(slices.Clone(now.Finalizers), i, i+1)
	if err := h.world.User.Patch(context.Background(), now, client.MergeFrom(before)); err != nil {
		h.world.Failures.AddLocked(err)
	}
}

// releaseWhenQuiet removes the other controller's finalizers after the operator has become quiet. It reports whether there were any. The
// run fails if the operator has removed its own finalizer from such an object, and its passes over the object fail.
func (h *holder) releaseWhenQuiet() bool {
	h.world.Mu.Lock()
	defer h.world.Mu.Unlock()
	for i := range h.held {
		if held := &h.held[i]; held.isOurs() {
			if err := h.operator.HeldError(held.id); err != nil {
				h.world.Failures.AddLocked(err)
				return false
			}
		}
	}
	return h.release(nil)
}
