package memoryserver

import (
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/json"
)

// patch changes an object by a merge, JSON or strategic merge patch. The caller holds the lock.
func (s *Server) patch(k *kind, key client.ObjectKey, subresource string, kind types.PatchType, content []byte, options writeOptions) (client.Object, error) {
	if !k.accepts(kind) {
		return nil, errUnsupportedPatch
	}
	return s.modify(k, key, subresource, "", options, func(live client.Object) (client.Object, error) {
		made, err := patched(k, live, kind, content, options.strict)
		if err != nil {
			return nil, err
		}
		k.rules.setDefaults(made)
		made = k.fields[subresource].UpdateNoErrors(live, made, options.manager).(client.Object)
		dropSameOwners(made)
		if err := matchNamespace(k, key.Namespace, made); err != nil {
			return nil, err
		}
		return made, matchName(made, key.Name)
	})
}

func patched(k *kind, live client.Object, kind types.PatchType, content []byte, strict bool) (client.Object, error) {
	switch kind {
	case types.MergePatchType, types.JSONPatchType:
		return patchedJSON(k, live, kind, content, strict)
	}
	return patchedStrategically(k.rules.(*builtIn), live, content, strict)
}

// accepts reports whether a kind takes a type of patch. Custom resources have no strategy to merge by.
func (k *kind) accepts(patch types.PatchType) bool {
	switch patch {
	case types.MergePatchType, types.JSONPatchType:
		return true
	case types.StrategicMergePatchType:
		_, is := k.rules.(*builtIn)
		return is
	}
	return false
}

var errUnsupportedPatch = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
	Message: "the body of the request was in an unknown format - accepted media types include: " +
		"application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
}}

func patchedJSON(k *kind, live client.Object, kind types.PatchType, content []byte, strict bool) (client.Object, error) {
	before, err := k.rules.encode(live)
	if err != nil {
		return nil, err
	}
	after, err := applyJSON(before, kind, content)
	if err != nil {
		return nil, err
	}
	made, err := k.rules.decode(after, strict)
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(after), err.Error())})
	}
	return made, nil
}

func applyJSON(before []byte, kind types.PatchType, content []byte) ([]byte, error) {
	if kind == types.MergePatchType {
		if err := json.UnmarshalCaseSensitivePreserveInts(content, &map[string]any{}); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		after, err := jsonpatch.MergePatch(before, content)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return after, err
	}
	operations, err := jsonpatch.DecodePatch(content)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, unprocessable(err)
	}
	return after, nil
}

func patchedStrategically(rules *builtIn, live client.Object, content []byte, strict bool) (client.Object, error) {
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	patch := map[string]any{}
	if err := json.UnmarshalCaseSensitivePreserveInts(content, &patch); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	shown := fmt.Sprintf("%+v", patch)
	after, err := strategicpatch.StrategicMergeMapPatch(before, patch, rules.like)
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc), errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys), errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return nil, apierrors.NewBadRequest(err.Error())
	case errors.Is(err, mergepatch.ErrNoListOfLists), errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return nil, unprocessable(err)
	case err != nil:
		return nil, err
	}
	made, err := rules.fromMap(after, strict)
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), shown, err.Error())})
	}
	return made, nil
}

func unprocessable(err error) error {
	return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
}
