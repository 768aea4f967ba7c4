package ownedresources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recoverFrom does what can be done when the API server has refused an apply. It returns the live object if that has been
// written in another way, or an error. That is the refusal if nothing can be done.
func (a *applier) recoverFrom(ctx context.Context, d *desired, refusal error) (client.Object, error) {
	duplicates := duplicateFields(refusal)
	recreates := d.options.recreate && apierrors.IsInvalid(refusal) && !isUntypable(refusal)
	if len(duplicates) == 0 && !recreates {
		return nil, refusal
	}
	live, err := a.readLive(ctx, d) // the cache may show it as ours although it has another owner by now
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", d, err)
	}
	if err := d.owner.mayWrite(d, live); err != nil {
		return nil, err
	}
	patch, err := replaceDuplicates(d, live, duplicates)
	switch {
	case err != nil:
		return nil, fmt.Errorf("fields of %s: %w", d, err)
	case patch != nil:
		if err := a.jsonPatch(ctx, d, live, patch); err != nil {
			return nil, fmt.Errorf("replace items of %s that have a value of ours: %w", d, err)
		}
		return live, nil
	case recreates:
		return nil, a.recreate(ctx, d, live, refusal)
	}
	return nil, refusal
}

const reasonRecreating = "Recreating"

// recreate deletes an object of which the API server refuses a change. The event of its deletion triggers the reconcile
// that creates it. Nothing in the refusal distinguishes an immutable field from a wrong value for certain, so a dry run
// tries first to create the new object, under another name.
func (a *applier) recreate(ctx context.Context, d *desired, live client.Object, refusal error) error {
	if a.owners.isRecreated(d) {
		return fmt.Errorf("recreated once for this change already: %w", refusal)
	}
	if _, err := a.postDryRun(ctx, d, ""); err != nil {
		return errors.Join(refusal, fmt.Errorf("%s is not recreated, since that would be refused too: %w", d, err))
	}
	if err := a.confirm(ctx, d.owner); err != nil {
		return err
	}
	if err := deleteExactly(ctx, d.owner.client, live); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s to recreate it: %w", d, err)
	}
	a.owners.setRecreated(d)
	a.record(d.owner, d.kind, live, outcomeRecreated, "")
	a.writes.Forget(live, client.ObjectKeyFromObject(live))
	return &WaitingError{reason: reasonRecreating, message: fmt.Sprintf("%s is recreated, since one of its fields cannot be changed", d)}
}

// lostRaceAsConflict turns the refusal of a precondition on the UID into a conflict. If the object was deleted or replaced
// meanwhile, the API server answers 409, or 422 on metadata.uid as if the object were invalid.
func lostRaceAsConflict(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	causes := status.Status().Details.Causes
	if len(causes) == 0 {
		return err
	}
	for _, cause := range causes {
		if cause.Field != "metadata.uid" {
			return err
		}
	}
	return withStatus(status, metav1.StatusReasonConflict, http.StatusConflict)
}

// unknownFieldAsInvalid turns the 500 with which the API server answers an apply of a field that its version does not
// have into a 422: the object is invalid, and the server is not at fault.
func unknownFieldAsInvalid(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInternalError(err) || !errors.As(err, &status) || !isUntypable(err) {
		return err
	}
	return withStatus(status, metav1.StatusReasonInvalid, http.StatusUnprocessableEntity)
}

// isUntypable reports whether the API server refused an apply that does not fit its schema, or that has a key twice.
func isUntypable(err error) bool {
	return strings.Contains(err.Error(), "failed to create typed patch object")
}

func withStatus(status apierrors.APIStatus, reason metav1.StatusReason, code int32) error {
	err := &apierrors.StatusError{ErrStatus: status.Status()}
	err.ErrStatus.Reason, err.ErrStatus.Code = reason, code
	return err
}

// refusalError is an error of the API server without the objects that it quotes. A quoted pod template would show
// environment variables to everybody who reads the owner's status or the log.
type refusalError struct {
	error
	message string
}

func (r *refusalError) Error() string { return r.message }
func (r *refusalError) Unwrap() error { return r.error }

func withoutValues(err error) error {
	message := err.Error()
	from, to := strings.Index(message, "{"), strings.LastIndex(message, "}")
	if from < 0 || to < from {
		return err
	}
	return &refusalError{error: err, message: message[:from] + "{…}" + message[to+1:]}
}
