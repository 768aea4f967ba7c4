package memoryserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/opblocks/opblocks/internal/memoryserver/kind"
)

// decodeError is the error for an object that the server cannot decode, or that has unknown fields under strict
// validation.
func decodeError(k *kind.Kind, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
		k.GVK.Kind, k.GVK.Version, k.GVK.Kind, err))
}

// asStatus returns an error as a client receives it: the API server answers 500 for errors without a status of their
// own.
func asStatus(err error) error {
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
	}}
}

const modified = "the object has been modified; please apply your changes to the latest version and try again"

func versionConflict(k *kind.Kind, name string) error {
	return apierrors.NewConflict(k.GroupResource(), name, errors.New(modified))
}

func uidConflict(k *kind.Kind, name string, want, have types.UID) error {
	return apierrors.NewConflict(k.GroupResource(), name, kind.UIDMismatch(want, have))
}
