package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answer returns the response with an object, or with an error of the operator's client.
func (c *call) answer(status int, obj any, err error) (*http.Response, error) {
	if err != nil {
		return respondError(c.request, err)
	}
	return respond(c.request, status, obj)
}

func respond(r *http.Request, status int, obj any) (*http.Response, error) {
	content, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	answer := newResponse(r, status, io.NopCloser(bytes.NewReader(content)))
	answer.ContentLength = int64(len(content))
	return answer, nil
}

func newResponse(r *http.Request, status int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}}, Body: body, ContentLength: -1,
	}
}

// respondError returns the response for an error of the operator's client. If the error is not an answer of an API server, respondError
// returns it, so the connection breaks: the process has ended, or a fault is a network error.
func respondError(r *http.Request, err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		sent := status.Status()
		sent.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return respond(r, int(sent.Code), sent)
	}
	if broken, ok := errors.AsType[*url.Error](err); ok {
		return nil, broken.Err // net/http wraps the error again
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	if meta.IsNoMatchError(err) {
		return respondError(r, notServed(r.URL.Path, err.Error()))
	}
	return respondError(r, apierrors.NewInternalError(err))
}

// unsupported returns the error for a media type that is not supported.
func unsupported(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

// acceptsJSON returns an error if a client accepts neither JSON objects nor metadata.
func acceptsJSON(header http.Header) error {
	accepted := strings.Join(header.Values("Accept"), ",")
	if accepted == "" {
		return nil
	}
	for one := range strings.SplitSeq(accepted, ",") {
		mediaType, parameters, err := mime.ParseMediaType(one)
		if err != nil {
			continue
		}
		as := parameters["as"]
		switch mediaType {
		case "*/*", "application/*", runtime.ContentTypeJSON:
			if as == "" || strings.HasPrefix(as, partialObjectMetadata) {
				return nil
			}
		}
	}
	return unsupported(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "only the following media types are accepted: "+runtime.ContentTypeJSON+" and "+runtime.ContentTypeJSON+";as="+partialObjectMetadata+";g=meta.k8s.io;v=v1")
}

const partialObjectMetadata = "PartialObjectMetadata"

// wantsMetadata reports whether a client prefers metadata to whole objects.
func wantsMetadata(r *http.Request) bool {
	for one := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		mediaType, parameters, err := mime.ParseMediaType(one)
		if err != nil || mediaType != runtime.ContentTypeJSON {
			continue
		}
		if as := parameters["as"]; as == "" || strings.HasPrefix(as, partialObjectMetadata) {
			return as != ""
		}
	}
	return false
}

// metadataKind is the kind of an answer that has only the metadata of an object.
var metadataKind = schema.GroupVersionKind{Group: "meta.k8s.io", Version: "v1", Kind: partialObjectMetadata}
