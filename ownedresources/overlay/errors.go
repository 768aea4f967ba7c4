package overlay

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// InvalidError is returned for a patch that its author has to correct. Its message never contains values of the patch,
// which may be secret. Find it with errors.As:
//
//	if invalid, ok := errors.AsType[*overlay.InvalidError](err); ok { … }
//
// apierrors.IsInvalid reports true for it as well. So package reconcile shows it in a condition and does not retry it until
// the object changes, as it does with an object that the API server refuses.
type InvalidError struct {
	// Errors has an error for each wrong field, at most ten. Each path begins with the path of the patch, see [At].
	Errors field.ErrorList
}

func (e *InvalidError) Error() string {
	messages := make([]string, 0, len(e.Errors))
	for _, one := range e.Errors {
		messages = append(messages, one.Error())
	}
	return strings.Join(messages, "; ")
}

// Reason returns the reason for a condition that shows the error: InvalidPodTemplate.
func (*InvalidError) Reason() string { return "InvalidPodTemplate" }

// Status returns the status with which the API server would refuse the object: 422, Invalid. apierrors.IsInvalid uses
// it.
func (e *InvalidError) Status() metav1.Status {
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: e.Error(),
	}
}
