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

// holder is another controller, whose finalizer holds objects that the user deletes. The run's lock guards it.
type holder struct {
	*operator.Operator
	held []heldObject
}

// heldObject is an object that the user deletes, and that another controller holds by a finalizer.
type heldObject struct {
	id  request.ObjectID
	obj *metav1.PartialObjectMetadata // as it was before the deletion
}

// isOurs reports whether the object had other finalizers, which are the operator's, when it was deleted.
func (h *heldObject) isOurs() bool { return len(h.obj.Finalizers) > 0 }

// reach notes that the user deletes an object, and lets another controller add a finalizer just before if that is
// planned. inPass is true if the action happens in the middle of a pass. The caller holds the lock.
func (o *holder) reach(obj client.Object, inPass bool) {
	gvk, err := apiutil.GVKForObject(obj, o.Scheme)
	if err != nil || o.Leader == nil {
		return
	}
	id := request.ObjectID{Kind: gvk, Name: client.ObjectKeyFromObject(obj)}
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(gvk)
	if err := o.User.Get(context.Background(), id.Name, is); err != nil || is.DeletionTimestamp != nil {
		return
	}
	fault, at := o.Plan.Reach(plan.Point{Name: "deletion of " + id.String(), Deletion: true})
	if fault != kinds.ForeignFinalizer {
		return
	}
	held := is.DeepCopy()
	held.Finalizers = append(held.Finalizers, state.OtherControllerKey)
	if err := o.User.Patch(context.Background(), held, client.MergeFrom(is)); err != nil {
		return // a kind whose finalizers cannot be set
	}
	o.held = append(o.held, heldObject{id, is})
	o.Plan.NoteInjected(fault, at)
	note := trace.Row{What: "  another controller: add a finalizer to " + id.String(), Fault: fault}
	if inPass {
		o.Trace.AddBefore(note)
	} else {
		o.Trace.Add(note)
	}
}

// release removes the other controller's finalizer from the object, or from all objects if it is nil. It reports whether
// it held one. The caller holds the lock.
func (o *holder) release(obj client.Object) bool {
	released := false
	o.held = slices.DeleteFunc(o.held, func(h heldObject) bool {
		if obj != nil && h.id.Name != client.ObjectKeyFromObject(obj) {
			return false
		}
		released = true
		o.removeFinalizer(&h)
		return true
	})
	return released
}

// removeFinalizer removes the other controller's finalizer from one object.
func (o *holder) removeFinalizer(h *heldObject) {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(h.id.Kind)
	err := o.User.Get(context.Background(), h.id.Name, now)
	i := slices.Index(now.Finalizers, state.OtherControllerKey)
	if err != nil || now.UID != h.obj.UID || i < 0 {
		o.FailLocked(world.LostError("the finalizer "+state.OtherControllerKey, h.id))
		return
	}
	o.Trace.Add(trace.Row{What: "another controller: remove the finalizer of " + h.id.String()})
	before := now.DeepCopy()
	now.Finalizers = slices.Delete(slices.Clone(now.Finalizers), i, i+1)
	if err := o.User.Patch(context.Background(), now, client.MergeFrom(before)); err != nil {
		o.FailLocked(err)
	}
}

// releaseWhenQuiet ends the deletion of objects that another controller has held until the operator was quiet. It reports
// whether there were any. The run fails if the operator has removed its own finalizer, and its passes over the object fail.
func (o *holder) releaseWhenQuiet() bool {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	for i := range o.held {
		if h := &o.held[i]; h.isOurs() {
			if err := o.HeldError(h.id); err != nil {
				o.FailLocked(err)
				return false
			}
		}
	}
	return o.release(nil)
}
