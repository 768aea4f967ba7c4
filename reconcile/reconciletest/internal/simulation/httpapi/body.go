package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// readBody reads and closes the body of a request.
func readBody(r *http.Request) (content []byte, err error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// fromProtobuf decodes objects of client-go's kinds and their options from protobuf.
var fromProtobuf = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

// jsonBody returns the body of a request as JSON.
func (c *call) jsonBody() ([]byte, error) {
	sent := c.request.Header.Get("Content-Type")
	mediaType, _, err := mime.ParseMediaType(sent)
	switch {
	case len(c.content) == 0, sent == "", err == nil && mediaType == runtime.ContentTypeJSON:
		return c.content, nil
	case err == nil && mediaType == runtime.ContentTypeProtobuf:
		obj, gvk, err := fromProtobuf.Decode(c.content, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		obj.GetObjectKind().SetGroupVersionKind(*gvk)
		return json.Marshal(obj)
	}
	return nil, unsupported(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s, %s", runtime.ContentTypeJSON, runtime.ContentTypeProtobuf))
}

// sentObject returns the object in the body of a request. If the object has no namespace, it gets the namespace of the path, as on the real
// server.
func (c *call) sentObject() (*unstructured.Unstructured, error) {
	content, err := c.jsonBody()
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(content, &obj.Object); err != nil || obj.Object == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("couldn't get version/kind; the body of %s %s is not an object in JSON", c.request.Method, c.request.URL.Path))
	}
	switch sent := obj.GroupVersionKind(); {
	case sent == schema.GroupVersionKind{}:
		obj.SetGroupVersionKind(c.gvk)
	case sent != c.gvk:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object sent is a %s, and the path %s is of %s", sent, c.request.URL.Path, c.gvk))
	}
	switch sent := obj.GetNamespace(); {
	case sent == "" && c.namespace != "":
		obj.SetNamespace(c.namespace)
	case sent != c.namespace:
		return nil, apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return obj, nil
}

// namedObject is like sentObject, for a request whose path contains a name.
func (c *call) namedObject() (*unstructured.Unstructured, error) {
	obj, err := c.sentObject()
	if err != nil {
		return nil, err
	}
	switch sent := obj.GetName(); {
	case sent == "":
		obj.SetName(c.name)
	case sent != c.name:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", sent, c.name))
	}
	return obj, nil
}
