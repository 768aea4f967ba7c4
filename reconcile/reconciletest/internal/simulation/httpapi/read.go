package httpapi

import (
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (c *call) get() (*http.Response, error) {
	found := c.object(wantsMetadata(c.request))
	err := c.Reader.Get(c.request.Context(), c.key(), found)
	return c.answer(http.StatusOK, asSent(found), err)
}

func (c *call) list() (*http.Response, error) {
	options, err := listOptions(c.request.URL.Query(), c.namespace)
	if err != nil {
		return respondError(c.request, err)
	}
	listKind := c.gvk.GroupVersion().WithKind(c.gvk.Kind + "List")
	if wantsMetadata(c.request) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(listKind)
		err := c.Reader.List(c.request.Context(), list, options)
		list.SetGroupVersionKind(metadataKind.GroupVersion().WithKind(metadataKind.Kind + "List"))
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(metadataKind)
		}
		return c.answer(http.StatusOK, list, err)
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listKind)
	err = c.Reader.List(c.request.Context(), list, options)
	return c.answer(http.StatusOK, list, err)
}

// listOptions returns the namespace and the selectors of a list, a watch or the deletion of a collection.
func listOptions(query url.Values, namespace string) (*client.ListOptions, error) {
	options := &client.ListOptions{Namespace: namespace}
	var err error
	if selector := query.Get("labelSelector"); selector != "" {
		if options.LabelSelector, err = labels.Parse(selector); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if selector := query.Get("fieldSelector"); selector != "" {
		if options.FieldSelector, err = fields.ParseSelector(selector); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	return options, nil
}

// asSent returns an object as an answer has it. An object with only metadata gets the kind PartialObjectMetadata.
func asSent(obj client.Object) client.Object {
	if part, ok := obj.(*metav1.PartialObjectMetadata); ok {
		part.SetGroupVersionKind(metadataKind)
	}
	return obj
}
