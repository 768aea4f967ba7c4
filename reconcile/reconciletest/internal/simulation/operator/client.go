package operator

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/hashedvalues"
	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// recordingClient is the operator's client. It reads from the cache, except unstructured objects by default, and writes to
// the server. It records every call. Faults may be injected into the calls that go to the server.
type recordingClient struct {
	process      *Process
	live         client.WithWatch
	unstructured bool // unstructured objects are read from the cache too
}

var _ client.Client = &recordingClient{}

func (c *recordingClient) Scheme() *runtime.Scheme     { return c.live.Scheme() }
func (c *recordingClient) RESTMapper() meta.RESTMapper { return c.live.RESTMapper() }

func (c *recordingClient) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return c.live.GroupVersionKindFor(obj)
}

func (c *recordingClient) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return c.live.IsObjectNamespaced(obj)
}

// readsLive reports whether an object or a list is read from the server.
func (c *recordingClient) readsLive(obj runtime.Object) bool {
	_, isUnstructured := obj.(runtime.Unstructured)
	return isUnstructured && !c.unstructured
}

func (c *recordingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if c.readsLive(obj) {
		return apiReader{c}.Get(ctx, key, obj, opts...)
	}
	return c.wholeReader().Get(ctx, key, obj, opts...)
}

func (c *recordingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if c.readsLive(list) {
		return apiReader{c}.List(ctx, list, opts...)
	}
	return c.wholeReader().List(ctx, list, opts...)
}

// wholeReader returns a reader of the cache. If the cache holds only the hash of an object, the reader reads the object from the server.
func (c *recordingClient) wholeReader() client.Reader {
	return hashedvalues.Reader{Cached: cacheReader{c}, Live: apiReader{c}}
}

// cacheReader reads from the cache. Its calls are recorded.
type cacheReader struct{ client *recordingClient }

func (c cacheReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r := c.client.request("get", obj)
	r.Object, r.Cached, r.Behind = key, true, c.client.process.Mgr.Cache().Kinds.Behind(r.Kind, obj)
	return c.client.process.read(ctx, r, func() error { return c.client.process.Mgr.Cache().Get(ctx, key, obj, opts...) })
}

func (c cacheReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	r := c.client.listRequest(list, opts)
	r.Cached, r.Behind = true, c.client.process.Mgr.Cache().Kinds.Behind(r.Kind, list)
	return c.client.process.read(ctx, r, func() error { return c.client.process.Mgr.Cache().List(ctx, list, opts...) })
}

// apiReader reads from the server. Its calls are recorded, and faults may be injected into them. Like the reader of a real manager, it has
// all methods of a client.
type apiReader struct{ *recordingClient }

func (a apiReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	r := a.request("get", obj)
	r.Object = key
	return a.process.send(ctx, r, func(bool) error { return a.live.Get(ctx, key, obj, opts...) })
}

func (a apiReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return a.process.send(ctx, a.listRequest(list, opts), func(bool) error { return a.live.List(ctx, list, opts...) })
}

func (c *recordingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	r := c.request("create", obj)
	r.Body, r.DryRun = bodyOf(obj), isDryRun((&client.CreateOptions{}).ApplyOptions(opts).DryRun)
	return c.process.send(ctx, r, func(lost bool) error { return c.live.Create(ctx, answerTarget(obj, lost), opts...) })
}

func (c *recordingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	r := c.request("update", obj)
	r.Body, r.DryRun = bodyOf(obj), isDryRun((&client.UpdateOptions{}).ApplyOptions(opts).DryRun)
	return c.process.send(ctx, r, func(lost bool) error { return c.live.Update(ctx, answerTarget(obj, lost), opts...) })
}

func (c *recordingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	r := c.patchRequest(obj, patch)
	r.DryRun = isDryRun((&client.PatchOptions{}).ApplyOptions(opts).DryRun)
	return c.process.send(ctx, r, func(lost bool) error { return c.live.Patch(ctx, answerTarget(obj, lost), patch, opts...) })
}

func (c *recordingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	r := applyRequest(obj)
	r.DryRun = isDryRun((&client.ApplyOptions{}).ApplyOptions(opts).DryRun)
	return c.process.send(ctx, r, func(bool) error { return c.live.Apply(ctx, obj, opts...) })
}

func (c *recordingClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	r := c.request("delete", obj)
	r.DryRun = isDryRun((&client.DeleteOptions{}).ApplyOptions(opts).DryRun)
	return c.process.send(ctx, r, func(bool) error { return c.live.Delete(ctx, obj, opts...) })
}

func (c *recordingClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	r := c.request("deletecollection", obj)
	var options client.DeleteAllOfOptions
	options.ApplyOptions(opts)
	r.Object, r.DryRun = client.ObjectKey{Namespace: options.Namespace}, isDryRun(options.DryRun)
	return c.process.send(ctx, r, func(bool) error { return c.live.DeleteAllOf(ctx, obj, opts...) })
}

func (c *recordingClient) Status() client.SubResourceWriter { return c.SubResource("status") }

func (c *recordingClient) SubResource(name string) client.SubResourceClient {
	return &subresourceClient{c, name, c.live.SubResource(name)}
}

type subresourceClient struct {
	client *recordingClient
	name   string
	live   client.SubResourceClient
}

func (s *subresourceClient) request(verb string, obj client.Object) *request.Call {
	r := s.client.request(verb, obj)
	r.Subresource = s.name
	return r
}

func (s *subresourceClient) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	return s.client.process.send(ctx, s.request("get", obj), func(bool) error { return s.live.Get(ctx, obj, sub, opts...) })
}

func (s *subresourceClient) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	r := s.request("create", obj)
	r.Body, r.DryRun = bodyOf(sub), isDryRun((&client.SubResourceCreateOptions{}).ApplyOptions(opts).DryRun)
	return s.client.process.send(ctx, r, func(lost bool) error { return s.live.Create(ctx, obj, answerTarget(sub, lost), opts...) })
}

func (s *subresourceClient) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	r := s.request("update", obj)
	r.Body, r.DryRun = bodyOf(obj), isDryRun((&client.SubResourceUpdateOptions{}).ApplyOptions(opts).DryRun)
	return s.client.process.send(ctx, r, func(lost bool) error { return s.live.Update(ctx, answerTarget(obj, lost), opts...) })
}

func (s *subresourceClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	r := s.client.patchRequest(obj, patch)
	r.Subresource, r.DryRun = s.name, isDryRun((&client.SubResourcePatchOptions{}).ApplyOptions(opts).DryRun)
	return s.client.process.send(ctx, r, func(lost bool) error { return s.live.Patch(ctx, answerTarget(obj, lost), patch, opts...) })
}

func (s *subresourceClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	r := applyRequest(obj)
	r.Subresource, r.DryRun = s.name, isDryRun((&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun)
	return s.client.process.send(ctx, r, func(bool) error { return s.live.Apply(ctx, obj, opts...) })
}

// request returns a call for an object.
func (c *recordingClient) request(verb string, obj client.Object) *request.Call {
	r := &request.Call{Request: request.Request{Verb: verb, Object: client.ObjectKeyFromObject(obj)}}
	if r.Object.Name == "" && obj.GetGenerateName() != "" {
		r.Object.Name = obj.GetGenerateName() + "*"
	}
	if gvk, err := apiutil.GVKForObject(obj, c.Scheme()); err == nil {
		r.Kind = gvk
	}
	return r
}

func (c *recordingClient) listRequest(list client.ObjectList, opts []client.ListOption) *request.Call {
	var options client.ListOptions
	r := &request.Call{Request: request.Request{Verb: "list", Object: client.ObjectKey{Namespace: options.ApplyOptions(opts).Namespace}}}
	if gvk, err := apiutil.GVKForObject(list, c.Scheme()); err == nil {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
		r.Kind = gvk
	}
	return r
}

func (c *recordingClient) patchRequest(obj client.Object, patch client.Patch) *request.Call {
	verb := "patch"
	if patch.Type() == types.ApplyPatchType {
		verb = "apply"
	}
	r := c.request(verb, obj)
	r.Body, _ = patch.Data(obj) // a failure is returned by the request itself
	return r
}

func applyRequest(obj runtime.ApplyConfiguration) *request.Call {
	r := &request.Call{Request: request.Request{Verb: "apply"}}
	r.Body, _ = json.Marshal(obj)
	var named metav1.PartialObjectMetadata
	if err := json.Unmarshal(r.Body, &named); err == nil {
		r.Kind, r.Object = named.GroupVersionKind(), client.ObjectKeyFromObject(&named)
	}
	return r
}

func isDryRun(options []string) bool { return slices.Contains(options, metav1.DryRunAll) }

func bodyOf(obj client.Object) []byte {
	body, err := json.Marshal(obj)
	if err != nil {
		return nil // the request itself will return the error
	}
	return body
}

// answerTarget returns the object into which the client writes the answer: the caller's object, or a copy if the answer is lost. An
// unstructured object is copied as JSON, since DeepCopy panics for some Go types that a client can send.
func answerTarget(obj client.Object, lost bool) client.Object {
	if !lost {
		return obj
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		copied := &unstructured.Unstructured{}
		if content, err := json.Marshal(u.Object); err == nil && utiljson.Unmarshal(content, &copied.Object) == nil {
			return copied
		}
	}
	return obj.DeepCopyObject().(client.Object)
}
