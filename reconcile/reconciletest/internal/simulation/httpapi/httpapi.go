// Package httpapi speaks the HTTP of an API server, without a socket: a [Transport] answers the requests of clientsets, dynamic
// clients, metadata clients, discovery clients and informers that an operator builds from a rest.Config.
//
// target.go finds out what a request is about. read.go, write.go and subresource.go call the operator's own client, so that requests have
// the same names and the same faults as through that client. watch.go streams changes when the operator's cache shows them. discovery.go
// lists what is served, body.go decodes what is sent, and answer.go encodes the answers.
//
// # Known differences from the real server
//
//   - Answers are JSON. A body may be JSON, YAML if it is an apply, or protobuf if it is of a kind of package client-go. CBOR is
//     answered with 415, after which client-go sends JSON.
//   - Tables, aggregated discovery and OpenAPI are not served.
//   - The limit of a list is ignored: it has one page.
//   - An answer with status 429 has no header Retry-After. Clients of client-go would wait and try again, and the operator
//     would never see the error.
//   - A watch never ends by itself, and sends no bookmarks but the one at the end of the initial events.
package httpapi

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver"
)

// Transport is the transport of an HTTP client whose requests the server in memory answers. All fields are required.
type Transport struct {
	Context context.Context // the context of the process: when it ends, all watches end
	Server  *memoryserver.Server
	Client  client.Client // carries out the writes
	Reader  client.Reader // carries out the reads, without a cache
	Watch   Watch
	Refuse  func() error // returns an error if the process has ended
}

// Watch calls handle for each change of a kind after the revision from, when the change becomes visible to the process, until stop is
// called. It returns the revision that is visible now: the caller has to send the changes between from and that revision itself.
type Watch func(gvk schema.GroupVersionKind, from int64, handle func(*memoryserver.Change) error) (seen int64, stop func())

var _ http.RoundTripper = &Transport{}

// RoundTrip answers a request. It returns an error if the process has ended, or if a fault breaks the connection.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	content, err := readBody(r)
	if err != nil {
		return nil, err
	}
	if err := t.Refuse(); err != nil {
		return nil, err
	}
	if found, isDiscovery := t.discover(r); isDiscovery {
		return respond(r, http.StatusOK, found)
	}
	target, err := t.targetOf(r)
	if err != nil {
		return respondError(r, err)
	}
	do := t.actionOf(r, target)
	if do == nil {
		return respondError(r, apierrors.NewMethodNotSupported(target.resource.GroupResource(), r.Method))
	}
	if err := acceptsJSON(r.Header); err != nil {
		return respondError(r, err)
	}
	return do(&call{Transport: t, target: target, request: r, content: content})
}

// call is one request.
type call struct {
	*Transport
	*target
	request *http.Request
	content []byte
}

// actionOf returns the function that answers a request. It returns nil if the target does not support the HTTP method.
func (t *Transport) actionOf(r *http.Request, of *target) func(*call) (*http.Response, error) {
	collection := of.name == ""
	switch {
	case of.subresource != "" && !of.isStatus():
		return subresourceActions[r.Method]
	case of.subresource != "":
		return objectActions[r.Method]
	case collection && r.Method == http.MethodGet && isTrue(r.URL.Query(), "watch"):
		return (*call).watch
	case collection && r.Method == http.MethodPost && of.lacksNamespace():
		return nil
	case collection:
		return collectionActions[r.Method]
	}
	return objectActions[r.Method]
}

var (
	collectionActions = map[string]func(*call) (*http.Response, error){
		http.MethodGet: (*call).list, http.MethodPost: (*call).create, http.MethodDelete: (*call).deleteAll,
	}
	objectActions = map[string]func(*call) (*http.Response, error){
		http.MethodGet: (*call).get, http.MethodPut: (*call).update, http.MethodPatch: (*call).patch, http.MethodDelete: (*call).delete,
	}
	subresourceActions = map[string]func(*call) (*http.Response, error){
		http.MethodGet: (*call).getSubresource, http.MethodPost: (*call).createSubresource,
		http.MethodPut: (*call).updateSubresource, http.MethodPatch: (*call).patchSubresource,
	}
)

// notServed returns the error for a path that the server in memory does not have.
func notServed(path, remedy string) error {
	err := apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", "", 0, false)
	err.ErrStatus.Message = fmt.Sprintf("the server in memory of reconciletest does not serve %s: %s", path, remedy)
	return err
}
