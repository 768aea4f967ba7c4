// Package webhook calls the webhooks of an operator as the API server does. The operator runs in this process, so its handlers are called
// directly, without a connection.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// errNoWebhook is the error of a request that needs a webhook which the operator has not registered.
var errNoWebhook = errors.New("the operator has registered no such webhook")

// Caller calls the webhooks of an operator.
type Caller struct {
	mu       sync.Mutex
	handlers *http.ServeMux // nil: no process of the operator has started yet
	reviews  int            // how many reviews were sent
	missing  error          // the error of the last review for whose path no handler is registered
	broken   error          // the error of every call of an admission webhook; nil: they can be reached
	called   bool           // an admission webhook was called since Watch
}

// Serve sets the handlers that an operator has registered, by their paths. The caller sends reviews to them.
func (c *Caller) Serve(handlers *http.ServeMux) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handlers = handlers
}

// Missing returns an error if a request needed a webhook that the operator has not registered. It says what to do.
func (c *Caller) Missing() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.missing
}

// Watch starts to record whether an admission webhook is called, for Called. If broken is not nil, each admission webhook fails with it
// until Called is called.
func (c *Caller) Watch(broken error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken, c.called = broken, false
}

// Called reports whether an admission webhook was called since Watch. After it, admission webhooks can be reached again.
func (c *Caller) Called() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = nil
	return c.called
}

// nextUID returns the UID of the next review.
func (c *Caller) nextUID() types.UID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reviews++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", c.reviews))
}

// noteReview records the call of an admission webhook. It returns an error if the webhook cannot be reached.
func (c *Caller) noteReview() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.called = true
	return c.broken
}

// inReview is the key of the contexts of reviews.
type inReview struct{}

// IsReview reports whether a Caller has called a webhook with this context.
func IsReview(ctx context.Context) bool { return ctx.Value(inReview{}) != nil }

// post sends a review to the webhook at an address, and decodes the answer. It returns the errors of the API server's client.
func (c *Caller) post(address, timeout string, review, answer any) error {
	to, err := url.Parse(address)
	if err != nil {
		return err
	}
	content, err := json.Marshal(review)
	if err != nil {
		return err
	}
	to.RawQuery = "timeout=" + timeout
	request := httptest.NewRequestWithContext(context.WithValue(context.Background(), inReview{}, true), http.MethodPost, to.String(), bytes.NewReader(content))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	handler, err := c.handlerOf(request)
	switch {
	case errors.Is(err, errNoWebhook):
		return err
	case err != nil:
		return postError(to, err)
	}
	recorder := httptest.NewRecorder()
	if !serve(handler, recorder, request) {
		return postError(to, io.EOF)
	}
	body := recorder.Body.Bytes()
	if code := recorder.Code; code < http.StatusOK || code > http.StatusPartialContent {
		return apierrors.NewGenericServerResponse(code, http.MethodPost, schema.GroupResource{}, "", strings.TrimSpace(string(body)), 0, true)
	}
	return json.Unmarshal(body, answer)
}

// handlerOf returns the handler of a webhook, or an error if it cannot be reached.
func (c *Caller) handlerOf(request *http.Request) (http.Handler, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handlers == nil {
		return nil, syscall.ECONNREFUSED
	}
	handler, pattern := c.handlers.Handler(request)
	if pattern == "" {
		c.missing = fmt.Errorf("%w at %s: register it in Start, as main does, by ctrl.NewWebhookManagedBy(mgr, object).Complete() or by the manager's webhook server", errNoWebhook, request.URL.Path)
		return nil, c.missing
	}
	return handler, nil
}

// serve calls a handler. It returns false if the handler panics: the server of a real process would then close the connection.
func serve(handler http.Handler, recorder http.ResponseWriter, request *http.Request) (done bool) {
	defer func() { _ = recover() }() // the caller of serve returns the error that the API server would get
	handler.ServeHTTP(recorder, request)
	return true
}

// postError returns the error of a client that got no answer to its request.
func postError(to *url.URL, err error) error {
	return &url.Error{Op: "Post", URL: to.String(), Err: err}
}
