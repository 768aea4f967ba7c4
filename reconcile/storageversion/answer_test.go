package storageversion

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// noRightText is the message of the API server if a permission is missing.
const noRightText = `User "me" cannot patch resource "widgets/status" in API group "example.com" in the namespace "shop"`

var (
	widgets  = schema.GroupResource{Group: "example.com", Resource: "widgets"}
	noRight  = apierrors.NewForbidden(widgets, "w1", errors.New(noRightText)) //nolint:staticcheck // the words of the API server
	broken   = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "conversion webhook for example.com/v1, Kind=Widget failed: connection refused"}}
	busy     = apierrors.NewTooManyRequests("too many requests", 1)
	invalid  = apierrors.NewInvalid(schema.GroupKind{Group: "example.com", Kind: "Widget"}, "w1", nil)
	policy   = apierrors.NewForbidden(widgets, "w1", errors.New("ValidatingAdmissionPolicy 'size' denied request: too small"))
	conflict = apierrors.NewConflict(widgets, "w1", errors.New("the object has been modified"))
)

// denial returns the error of a webhook, which can have any status code.
func denial(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: `admission webhook "size.example.com" denied the request: ` + message}}
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason    string
		err       error
		want      verdict
		transient bool
	}{
		"Invalid":          {"the schema does not accept the object", invalid, refused, false},
		"Policy":           {"a policy answers 403, as the authorizer does", policy, refused, false},
		"PlugIn":           {"so does an admission plug-in", apierrors.NewForbidden(widgets, "w1", errors.New("quota")), refused, false},
		"Webhook":          {"a webhook answers 400 if it names no code", denial(http.StatusBadRequest, "no"), refused, false},
		"WebhookForbidden": {"a right of the webhook is missing, and not ours", denial(http.StatusForbidden, noRight.Error()), refused, false},
		"WebhookMissing":   {"the object exists", denial(http.StatusNotFound, "no"), refused, false},
		"WebhookInternal":  {"its answer is the same the next time", denial(http.StatusInternalServerError, "no"), refused, false},
		"Right":            {"each other object would be refused too", noRight, denied, false},
		"Conversion":       {"the webhook does not run, or does not convert the object", broken, failing, true},
		"Internal":         {"nobody knows why", apierrors.NewInternalError(errors.New("etcd")), failing, true},
		"Conflict":         {"others write the object all the time", conflict, failing, false},
		"TooLarge":         {"etcd does not take it", apierrors.NewRequestEntityTooLargeError("2 MB"), failing, false},
		"ManagedFields":    {"it has to be repaired", fmt.Errorf("%w: %w", errUnreadable, errors.New("json")), failing, false},
		"Busy":             {"priority and fairness", busy, unanswered, true},
		"Unavailable":      {"a replica begins or ends", apierrors.NewServiceUnavailable("starting"), unanswered, true},
		"ServerTimeout":    {"its code is 500", apierrors.NewServerTimeout(widgets, "patch", 1), unanswered, true},
		"Timeout":          {"the server is slow", apierrors.NewTimeoutError("slow", 1), unanswered, true},
		"Proxy":            {"a load balancer has no replica", apierrors.NewGenericServerResponse(http.StatusBadGateway, "patch", widgets, "w1", "", 0, true), unanswered, true},
		"Token":            {"client-go reads it again", apierrors.NewUnauthorized("expired"), unanswered, true},
		"NoAnswer":         {"the connection was lost", context.DeadlineExceeded, unanswered, true},
	} {
		t.Run(name, func(t *testing.T) {
			wrapped := fmt.Errorf("write w1: %w", tc.err)
			assert.Equal(t, tc.want, judge(wrapped), tc.reason)
			assert.Equal(t, tc.transient, isTransient(wrapped), tc.reason)
		})
	}
}
