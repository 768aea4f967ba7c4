package webhook

import (
	"errors"
	"fmt"
	"net/url"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	"k8s.io/utils/ptr"
)

// Request is what a webhook gets about a write. Objects are JSON in the version of Kind. An object that does not exist is empty.
type Request struct {
	Kind, RequestKind         schema.GroupVersionKind     // in the version of the webhook's rule, and in the version of the request
	Resource, RequestResource schema.GroupVersionResource // the same
	Subresource               string
	Namespace, Name           string
	Operation                 admissionv1.Operation
	Object, OldObject         []byte
	Options                   []byte
	DryRun                    bool
}

// userName is the user that webhooks see in all requests. The server in memory does not know who sends a request.
const userName = "system:serviceaccount:default:reconciletest"

// Review calls a webhook with a request. It returns the JSON patch of a mutating webhook, or nil if the webhook changes nothing. Its errors
// are the errors that a client of the API server gets. If the webhook cannot be called and its failure policy is Ignore, Review returns no
// error.
func (c *Caller) Review(h *Hook, r *Request) (patch []byte, err error) {
	if r.DryRun && !h.DryRun {
		return nil, webhookerrors.NewDryRunUnsupportedErr(h.Name)
	}
	answer, err := c.ask(h, r)
	switch {
	case err != nil && h.Ignore && !errors.Is(err, errNoWebhook):
		return nil, nil
	case err != nil:
		return nil, apierrors.NewInternalError(fmt.Errorf("failed calling webhook %q: %w", h.Name, err))
	case !answer.Allowed:
		return nil, webhookerrors.ToStatusErr(h.Name, answer.Result)
	}
	return answer.Patch, nil
}

func (c *Caller) ask(h *Hook, r *Request) (*admissionv1.AdmissionResponse, error) {
	sent := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: c.nextUID(), Kind: metav1.GroupVersionKind(r.Kind), Resource: metav1.GroupVersionResource(r.Resource), SubResource: r.Subresource,
			RequestKind: new(metav1.GroupVersionKind(r.RequestKind)), RequestResource: new(metav1.GroupVersionResource(r.RequestResource)), RequestSubResource: r.Subresource,
			Name: r.Name, Namespace: r.Namespace, Operation: r.Operation, UserInfo: authenticationv1.UserInfo{Username: userName}, DryRun: &r.DryRun,
			Object: runtime.RawExtension{Raw: r.Object}, OldObject: runtime.RawExtension{Raw: r.OldObject}, Options: runtime.RawExtension{Raw: r.Options},
		},
	}
	if err := c.noteReview(); err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", &url.Error{Op: "Post", URL: h.address + "?timeout=" + h.timeout, Err: err})
	}
	var review admissionv1.AdmissionReview
	if err := c.post(h.address, h.timeout, sent, &review); err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	if err := verify(sent, &review, h.Mutating); err != nil {
		return nil, fmt.Errorf("received invalid webhook response: %w", err)
	}
	return review.Response, nil
}

// verify returns an error if an answer does not fit the review that was sent.
func verify(sent, review *admissionv1.AdmissionReview, mutating bool) error {
	answer := review.Response
	if answer == nil {
		return errors.New("webhook response was absent")
	}
	patchType := ptr.Deref(answer.PatchType, "")
	switch {
	case answer.UID != sent.Request.UID:
		return fmt.Errorf("expected response.uid=%q, got %q", sent.Request.UID, answer.UID)
	case review.GroupVersionKind() != sent.GroupVersionKind():
		return fmt.Errorf("expected webhook response of %v, got %v", sent.GroupVersionKind(), review.GroupVersionKind())
	case !mutating && len(answer.Patch) > 0:
		return errors.New("validating webhook may not return response.patch")
	case !mutating && answer.PatchType != nil:
		return errors.New("validating webhook may not return response.patchType")
	case len(answer.Patch) > 0 && answer.PatchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	case len(answer.Patch) == 0 && answer.PatchType != nil:
		return errors.New("webhook returned response.patchType but not response.patch")
	case len(answer.Patch) > 0 && patchType != admissionv1.PatchTypeJSONPatch:
		return fmt.Errorf("webhook returned invalid response.patchType of %q", patchType)
	}
	return nil
}
