// Package webhook calls the webhooks of an operator as the API server does. The operator runs in this process, so its handlers are called
// directly, without a connection.
package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// errNoWebhook is the error of a request for which a webhook has to be called that nobody has registered.
var errNoWebhook = errors.New("the operator has registered no such webhook")

// Caller calls the webhooks of an operator. Its methods must not be called at the same time.
type Caller struct {
	handlers *http.ServeMux // nil: no process of the operator has started yet
	reviews  int            // how many reviews were sent
	missing  error          // why the last review could not be sent, if nobody has registered the path
}

// Serve makes the caller send its reviews to the handlers that an operator has registered, by their paths.
func (c *Caller) Serve(handlers *http.ServeMux) { c.handlers = handlers }

// Missing returns an error if a webhook had to be called that the operator has not registered. It says what to do.
func (c *Caller) Missing() error { return c.missing }

// nextUID returns the UID of the next review.
func (c *Caller) nextUID() types.UID {
	c.reviews++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", c.reviews))
}

// post sends a review to the webhook at an address, and decodes the answer. It returns the errors of the API server's client.
func (c *Caller) post(address, timeout string, review, answer any) error {
	to, err := url.Parse(address)
	if err != nil {
		return err
	}
	path := to.Path
	if to.RawQuery = "timeout=" + timeout; c.handlers == nil {
		return postError(to, syscall.ECONNREFUSED)
	}
	content, err := json.Marshal(review)
	if err != nil {
		return err
	}
	request := httptest.NewRequest(http.MethodPost, to.String(), bytes.NewReader(content))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	if _, pattern := c.handlers.Handler(request); pattern == "" {
		c.missing = fmt.Errorf("%w: %s: register it in Start, as main does, by ctrl.NewWebhookManagedBy(mgr, object).Complete() or by the manager's webhook server", errNoWebhook, path)
		return c.missing
	}
	recorder := httptest.NewRecorder()
	if !serve(c.handlers, recorder, request) {
		return postError(to, io.EOF)
	}
	body := recorder.Body.Bytes()
	if code := recorder.Code; code < http.StatusOK || code > http.StatusPartialContent {
		return apierrors.NewGenericServerResponse(code, http.MethodPost, schema.GroupResource{}, "", strings.TrimSpace(string(body)), 0, true)
	}
	return json.Unmarshal(body, answer)
}

// serve calls a handler, and reports false if it panics: the server of a real process then closes the connection.
func serve(handler http.Handler, recorder http.ResponseWriter, request *http.Request) (done bool) {
	defer func() { _ = recover() }() //nolint:errcheck // the caller gets what a client of the webhook sees
	handler.ServeHTTP(recorder, request)
	return true
}

// postError returns the error of a client whose request did not get an answer.
func postError(to *url.URL, err error) error {
	return &url.Error{Op: "Post", URL: to.String(), Err: err}
}
