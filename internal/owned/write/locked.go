package write

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
)

// PatchLocked sends a merge patch of the metadata, and of the spec if spec is not nil. The UID and the resource version of the live object
// are preconditions. The API server's answer is written into answer, an empty object. An unstructured answer must have its kind.
func PatchLocked(ctx context.Context, o *owned.Owner, live, answer client.Object, metadata, spec map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	content := map[string]any{"metadata": metadata}
	if spec != nil {
		content["spec"] = spec
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	return lostRaceAsConflict(o.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), o.FieldManager))
}

// DeleteExactly deletes an object in the version that was read. If the object has changed since, the API server answers with a conflict,
// because the object may belong to another owner or set now. DeleteExactly returns the API server's errors unchanged.
func DeleteExactly(ctx context.Context, c client.Client, obj client.Object, policy metav1.DeletionPropagation) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return c.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(policy))
}

// lostRaceAsConflict turns the API server's refusal of the UID as a precondition into a conflict. If the object was deleted or replaced
// since it was read, the API server answers 409, or 422 on metadata.uid as if the object were invalid.
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

// withStatus returns a copy of an API server's error with another reason and code.
func withStatus(status apierrors.APIStatus, reason metav1.StatusReason, code int32) error {
	err := &apierrors.StatusError{ErrStatus: status.Status()}
	err.ErrStatus.Reason, err.ErrStatus.Code = reason, code
	return err
}
