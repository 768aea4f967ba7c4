package fakemanager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/opblocks/opblocks/internal/memoryserver"
)

// discovery is the transport of the manager's HTTP client. It answers the discovery of a group and version as an API server
// does, so that the operator finds out which kinds are served. CustomResourceDefinitions are forbidden: the server's kinds
// never change. Every other request is an error.
type discovery struct{ server *memoryserver.Server }

func (d discovery) RoundTrip(r *http.Request) (*http.Response, error) {
	if gv, ok := groupVersionOf(r); ok {
		resources := d.server.Resources(gv)
		if len(resources) == 0 {
			return respond(r, http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{}, gv.String()).Status())
		}
		return respond(r, http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv.String(), APIResources: resources,
		})
	}
	if strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/") {
		return respond(r, http.StatusForbidden, apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("reconciletest serves no CustomResourceDefinitions")).Status())
	}
	return nil, fmt.Errorf("%s %s: reconciletest's server is not reached by HTTP: use the manager's client", r.Method, r.URL.Path)
}

// groupVersionOf returns the group and version whose discovery a request reads.
func groupVersionOf(r *http.Request) (gv schema.GroupVersion, ok bool) {
	switch parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case r.Method != http.MethodGet:
		return gv, false
	case len(parts) == 2 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, true
	case len(parts) == 3 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return gv, false
}

func respond(r *http.Request, status int, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)),
	}, nil
}
