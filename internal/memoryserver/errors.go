package memoryserver

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// undecodable is the error of an object that the server cannot read, or that has unknown fields
// under strict validation.
func undecodable(k *kind, err error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v",
		k.gvk.Kind, k.gvk.Version, k.gvk.Kind, err))
}

// asStatus makes an error what a client gets to see: the API server answers 500 for errors that
// have no status of their own.
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

func staleVersion(k *kind, name string) error {
	return apierrors.NewConflict(k.groupResource(), name, errors.New(modified))
}

func otherUID(k *kind, name string, want, have types.UID) error {
	return apierrors.NewConflict(k.groupResource(), name, uidMismatch(want, have))
}

func uidMismatch(want, have types.UID) error {
	return fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", want, have) //nolint:staticcheck // The server's words.
}
