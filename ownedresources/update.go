package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/eventnote"
)

// update writes to a live object that is ours, if needed.
func (a *applier) update(ctx context.Context, w wanted, live client.Object) (Result, error) {
	if err := w.owner.owns(&w, live); err != nil {
		if orphan, is := errors.AsType[orphanError](err); is {
			err = a.collect(ctx, &w, live, orphan)
		}
		return Result{}, err
	}
	if a.upToDate(&w, live) {
		return Result{Object: live, Operation: Unchanged}, nil
	}
	differences := w.kind.plan.Differences(w.object, live)
	paths := pathsOf(differences)
	if live.GetAnnotations()[AnnotationSet] != w.owner.set {
		paths = "metadata.annotations[" + AnnotationSet + "], by another step that builds the same object"
	}
	if err := a.slowDown(&w, live, paths); err != nil {
		return Result{}, err
	}
	if err := a.prepare(ctx, w, live); err != nil {
		return Result{}, err
	}
	answer, err := a.send(ctx, w, live.GetUID())
	if fields := clashes(err); len(fields) > 0 {
		settled, ok, settleErr := a.settleClashes(ctx, w, fields)
		if settleErr != nil {
			return Result{}, settleErr
		}
		if ok {
			answer, err = settled, nil
		}
	}
	if apierrors.IsInvalid(err) && !isUntypable(err) && w.options.recreate {
		return Result{}, a.recreate(ctx, w, err)
	}
	if err != nil {
		return Result{}, err
	}
	a.guard.note(&w, answer.GetUID(), paths)
	a.written(w, answer)
	if len(differences) == 0 { // what is wanted has changed, in a way that the live object covers
		a.tell(w.owner, w.kind, answer, deedApplied, "")
	} else {
		a.tell(w.owner, w.kind, answer, deedApplied, paths)
	}
	return Result{Object: answer, Operation: Applied}, nil
}

// slowDown gives an error while the guard holds the next write back.
func (a *applier) slowDown(w *wanted, live client.Object, paths string) error {
	wait, begins := a.guard.hold(w, live.GetUID(), paths)
	if wait == 0 {
		return nil
	}
	message := fmt.Sprintf("%s is changed back again and again by somebody else, so it is written less often: %s", w, paths)
	if begins && a.recorder != nil {
		a.recorder.Eventf(w.owner.object, live, corev1.EventTypeWarning, reasonWriteLoop, "Apply", "%s", eventnote.Cut(message))
	}
	return &WaitingError{reason: reasonWriteLoop, message: message, after: wait}
}

// upToDate decides, locally, that nothing has to be sent.
func (a *applier) upToDate(w *wanted, live client.Object) bool {
	annotations := live.GetAnnotations()
	if !w.sum.isIn(annotations[AnnotationApplied]) || annotations[AnnotationSet] != w.owner.set || !w.owner.referencedBy(live) {
		return false
	}
	return w.kind.plan.Covers(w.object, live) ||
		a.settled.holds(live.GetUID(), w.kind.plan.Differences(w.object, live))
}

// prepare sees to it that the next apply neither leaves fields behind nor takes some along.
func (a *applier) prepare(ctx context.Context, w wanted, live client.Object) error {
	m, _, hadReplicas := splitMark(live.GetAnnotations()[AnnotationApplied])
	var err error
	fresh := live
	if m != applied {
		if fresh, err = a.migrate(ctx, w); err != nil {
			return err
		}
	}
	if releases := m != applied && w.options.unset != nil || hadReplicas && !setsReplicas(w.object); !releases {
		return nil
	}
	if fresh == live {
		if fresh, err = a.readLive(ctx, w); err != nil {
			return fmt.Errorf("read %s: %w", &w, err)
		}
	}
	return a.handOver(ctx, w, fresh)
}

// send applies server-side, by force: a field of ours that another manager took is drift.
// The UID is a precondition, so that nothing comes into being and no namesake is written.
func (a *applier) send(ctx context.Context, w wanted, uid types.UID) (client.Object, error) {
	body, err := w.kind.plan.AppendApply(nil, w.marked(applied), w.kind.gvk, string(uid))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", &w, err)
	}
	answer := w.kind.empty()
	answer.SetNamespace(w.object.GetNamespace())
	answer.SetName(w.object.GetName())
	err = w.owner.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, body), w.owner.fieldManager, client.ForceOwnership)
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", &w, withoutValues(unknownField(raced(err))))
	}
	return answer, nil
}

// raced tells a lost race by its UID from an invalid object: the API server answers 409, or
// 422 on metadata.uid, when the object was deleted or replaced meanwhile.
func raced(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	details := status.Status().Details
	for _, cause := range details.Causes {
		if cause.Field != "metadata.uid" {
			return err
		}
	}
	if len(details.Causes) == 0 {
		return err
	}
	conflict := &apierrors.StatusError{ErrStatus: status.Status()}
	conflict.ErrStatus.Reason = metav1.StatusReasonConflict
	conflict.ErrStatus.Code = http.StatusConflict
	return conflict
}

// isUntypable recognises what the API server says of an apply that does not fit its schema, or
// gives a key twice.
func isUntypable(err error) bool {
	return strings.Contains(err.Error(), "failed to create typed patch object")
}

// unknownField tells invalid input from a fault of the server: a field that the API server's
// version does not have makes it answer an apply with 500.
func unknownField(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInternalError(err) || !errors.As(err, &status) || !isUntypable(err) {
		return err
	}
	invalid := &apierrors.StatusError{ErrStatus: status.Status()}
	invalid.ErrStatus.Reason = metav1.StatusReasonInvalid
	invalid.ErrStatus.Code = http.StatusUnprocessableEntity
	return invalid
}
