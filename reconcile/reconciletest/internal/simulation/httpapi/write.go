package httpapi

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/memoryserver/kind"
)

// writeOptions are the parameters of every kind of write.
type writeOptions struct {
	dryRun     []string
	manager    string
	validation string
}

// options returns the options of a write. As on the real server, if no parameter names the field manager, the user agent does.
func (c *call) options() (writeOptions, error) {
	query := c.request.URL.Query()
	o := writeOptions{dryRun: query["dryRun"], manager: query.Get("fieldManager"), validation: query.Get("fieldValidation")}
	if o.manager == "" && !c.isApply() { // an apply must name its field manager
		o.manager, _, _ = strings.Cut(c.request.UserAgent(), "/")
	}
	return o, validDryRun(o.dryRun)
}

// validDryRun returns an error if dryRun has another value than All.
func validDryRun(values []string) error {
	for _, value := range values {
		if value != metav1.DryRunAll {
			return apierrors.NewBadRequest("dryRun: Unsupported value: \"" + value + "\": supported values: \"All\"")
		}
	}
	return nil
}

func (c *call) create() (*http.Response, error) {
	o, err := c.options()
	if err != nil {
		return respondError(c.request, err)
	}
	obj, err := c.sentObject()
	if err != nil {
		return respondError(c.request, err)
	}
	err = c.Client.Create(c.request.Context(), obj, &client.CreateOptions{DryRun: o.dryRun, FieldManager: o.manager, FieldValidation: o.validation})
	return c.answer(http.StatusCreated, obj, err)
}

func (c *call) update() (*http.Response, error) {
	o, err := c.options()
	if err != nil {
		return respondError(c.request, err)
	}
	obj, err := c.namedObject()
	if err != nil {
		return respondError(c.request, err)
	}
	options := client.UpdateOptions{DryRun: o.dryRun, FieldManager: o.manager, FieldValidation: o.validation}
	if c.isStatus() {
		err = c.Client.Status().Update(c.request.Context(), obj, &client.SubResourceUpdateOptions{UpdateOptions: options})
	} else {
		err = c.Client.Update(c.request.Context(), obj, &options)
	}
	return c.answer(http.StatusOK, obj, err)
}

func (c *call) patch() (*http.Response, error) {
	patch, options, err := c.sentPatch()
	if err != nil {
		return respondError(c.request, err)
	}
	obj := c.object(wantsMetadata(c.request))
	if c.isStatus() {
		err = c.Client.Status().Patch(c.request.Context(), obj, patch, &client.SubResourcePatchOptions{PatchOptions: *options})
	} else {
		err = c.Client.Patch(c.request.Context(), obj, patch, options)
	}
	return c.answer(http.StatusOK, asSent(obj), err)
}

func (c *call) isApply() bool { return c.patchType() == types.ApplyYAMLPatchType }

// patchType returns the media type of a patch.
func (c *call) patchType() types.PatchType {
	mediaType, _, err := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	if c.request.Method != http.MethodPatch || err != nil {
		return ""
	}
	return types.PatchType(mediaType)
}

// sentPatch returns the patch in the body of a request. An apply may be YAML.
func (c *call) sentPatch() (client.Patch, *client.PatchOptions, error) {
	o, err := c.options()
	if err != nil {
		return nil, nil, err
	}
	options := &client.PatchOptions{DryRun: o.dryRun, FieldManager: o.manager, FieldValidation: o.validation}
	if query := c.request.URL.Query(); query.Has("force") {
		options.Force = new(isTrue(query, "force"))
	}
	switch t := c.patchType(); t {
	case types.ApplyYAMLPatchType:
		content, err := yaml.YAMLToJSON(c.content)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest("error decoding YAML: " + err.Error())
		}
		return client.RawPatch(t, content), options, nil
	case types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType:
		return client.RawPatch(t, c.content), options, nil
	}
	return nil, nil, unsupported(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "the body of the request was in an unknown format - accepted media types include: "+
		strings.Join([]string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType)}, ", "))
}

func (c *call) delete() (*http.Response, error) {
	if c.subresource == kind.StatusSubresource {
		return respondError(c.request, apierrors.NewMethodNotSupported(c.resource.GroupResource(), c.request.Method))
	}
	options, err := c.deleteOptions()
	if err != nil {
		return respondError(c.request, err)
	}
	err = c.Client.Delete(c.request.Context(), c.object(false), options)
	return c.answer(http.StatusOK, success(&metav1.StatusDetails{Name: c.name, Group: c.resource.Group, Kind: c.resource.Resource}), err)
}

func (c *call) deleteAll() (*http.Response, error) {
	options, err := c.deleteOptions()
	if err != nil {
		return respondError(c.request, err)
	}
	selected, err := listOptions(c.request.URL.Query(), c.namespace)
	if err != nil {
		return respondError(c.request, err)
	}
	err = c.Client.DeleteAllOf(c.request.Context(), c.object(false), &client.DeleteAllOfOptions{ListOptions: *selected, DeleteOptions: *options})
	return c.answer(http.StatusOK, success(nil), err)
}

func success(details *metav1.StatusDetails) *metav1.Status {
	return &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess, Details: details}
}

// deleteOptions returns the options of a deletion. They are in the body of the request. If it has no body, they are in its parameters.
func (c *call) deleteOptions() (*client.DeleteOptions, error) {
	content, err := c.jsonBody()
	if err != nil {
		return nil, err
	}
	var sent metav1.DeleteOptions
	if len(content) > 0 {
		err = json.Unmarshal(content, &sent)
	} else {
		err = metav1.Convert_url_Values_To_v1_DeleteOptions(new(c.request.URL.Query()), &sent, nil)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("options of a deletion: " + err.Error())
	}
	policy := sent.PropagationPolicy
	if orphan := sent.OrphanDependents; orphan != nil && policy == nil { //nolint:staticcheck // clients still send it
		policy = new(metav1.DeletePropagationBackground)
		if *orphan {
			policy = new(metav1.DeletePropagationOrphan)
		}
	}
	return &client.DeleteOptions{
		GracePeriodSeconds: sent.GracePeriodSeconds, Preconditions: sent.Preconditions, PropagationPolicy: policy, DryRun: sent.DryRun,
	}, validDryRun(sent.DryRun)
}
