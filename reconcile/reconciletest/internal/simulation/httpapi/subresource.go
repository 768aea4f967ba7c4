package httpapi

import (
	"encoding/json"
	"net/http"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

const evictionSubresource = "eviction"

// notServed returns the error for a subresource that the server in memory does not have.
func (c *call) notServed() (*http.Response, error) {
	return respondError(c.request, notServed(c.request.Method+" "+c.request.URL.Path,
		"it has the subresources status, scale, and eviction of pods; what else it needs belongs into a fake, which Process.RoundTripper or Process.Effect calls"))
}

func (c *call) getSubresource() (*http.Response, error) {
	if c.subresource != kind.ScaleSubresource {
		return c.notServed()
	}
	scale := &unstructured.Unstructured{}
	err := c.Client.SubResource(c.subresource).Get(c.request.Context(), c.object(false), scale)
	return c.answer(http.StatusOK, scale, err)
}

// createSubresource evicts a pod.
func (c *call) createSubresource() (*http.Response, error) {
	if c.subresource != evictionSubresource {
		return c.notServed()
	}
	o, err := c.options()
	if err != nil {
		return respondError(c.request, err)
	}
	content, err := c.jsonBody()
	if err != nil {
		return respondError(c.request, err)
	}
	eviction := &policyv1.Eviction{}
	if err := json.Unmarshal(content, eviction); err != nil {
		return respondError(c.request, apierrors.NewBadRequest(err.Error()))
	}
	err = c.Client.SubResource(c.subresource).Create(c.request.Context(), c.object(false), eviction,
		&client.SubResourceCreateOptions{CreateOptions: client.CreateOptions{DryRun: o.dryRun, FieldManager: o.manager}})
	return c.answer(http.StatusCreated, success(nil), err)
}

func (c *call) updateSubresource() (*http.Response, error) {
	if c.subresource != kind.ScaleSubresource {
		return c.notServed()
	}
	o, err := c.options()
	if err != nil {
		return respondError(c.request, err)
	}
	content, err := c.jsonBody()
	if err != nil {
		return respondError(c.request, err)
	}
	scale := &unstructured.Unstructured{}
	if err := scale.UnmarshalJSON(content); err != nil {
		return respondError(c.request, apierrors.NewBadRequest(err.Error()))
	}
	err = c.Client.SubResource(c.subresource).Update(c.request.Context(), c.object(false), &client.SubResourceUpdateOptions{
		UpdateOptions: client.UpdateOptions{DryRun: o.dryRun, FieldManager: o.manager, FieldValidation: o.validation}, SubResourceBody: scale,
	})
	return c.answer(http.StatusOK, scale, err)
}

func (c *call) patchSubresource() (*http.Response, error) {
	if c.subresource != kind.ScaleSubresource {
		return c.notServed()
	}
	patch, options, err := c.sentPatch()
	if err != nil {
		return respondError(c.request, err)
	}
	scale := &unstructured.Unstructured{}
	err = c.Client.SubResource(c.subresource).Patch(c.request.Context(), c.object(false), patch, &client.SubResourcePatchOptions{PatchOptions: *options, SubResourceBody: scale})
	return c.answer(http.StatusOK, scale, err)
}
