package ownedresources

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/record"
)

// toSend returns a copy of the object with the controller reference or the mark, and this package's annotations.
func (d *desired) toSend(method record.Method) client.Object {
	obj := d.object
	if method == record.ByCreate {
		obj = d.full
	}
	obj = obj.DeepCopyObject().(client.Object)
	withCopiedFields(obj)
	for key, value := range d.generated {
		if len(secretValue(obj, key)) == 0 {
			setSecretValue(obj, key, value)
		}
	}
	d.addRunFields(obj, method)
	if method == record.ByCreate && d.replicas != nil {
		setReplicas(obj, *d.replicas)
	}
	if method == record.ByCreate {
		withSortedJSON(obj)
	}
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[record.Applied] = d.lastApplied(method)
	if d.owner.set != "" {
		annotations[record.Set] = d.owner.set
	}
	if d.owner.builtFrom != nil {
		if hash := d.owner.builtFrom.hash(d.reads); hash != "" {
			annotations[record.BuiltFrom] = hash
		}
	}
	if d.order > 0 || d.resetsOrder {
		annotations[record.Order] = strconv.Itoa(d.order)
	}
	obj.SetAnnotations(annotations)
	d.bind(obj)
	return obj
}

// lastApplied is the value of opblocks.dev/applied for a write of the object.
func (d *desired) lastApplied(method record.Method) string {
	return record.LastApplied{
		Method: method, Hash: string(d.sum[:]), Rewritten: d.rewritten, Replicas: d.replicas != nil || setsReplicas(d.object),
	}.String()
}

// toPost returns what a POST sends. It leaves out the fields that an apply would not send either. The API server would
// store them: fields of a copied live object, or a null that the first apply would then remove.
func (d *desired) toPost() (client.Object, error) {
	obj := d.toSend(record.ByCreate)
	if _, untyped := obj.(*unstructured.Unstructured); untyped {
		tree, err := d.tree(record.ByCreate)
		return &unstructured.Unstructured{Object: tree}, err
	}
	d.kind.comparer.DropServerOwned(obj)
	return obj, nil
}

// post creates the object.
func (a *applier) post(ctx context.Context, d *desired) (client.Object, error) {
	obj, err := d.toPost()
	if err != nil {
		return nil, err
	}
	c := &creation{desired: d, object: obj}
	send(ctx, c)
	return a.answer(c)
}

// postDryRun returns what the object would become if it were created. The name is left to the API server if it is empty.
func (a *applier) postDryRun(ctx context.Context, d *desired, name string) (client.Object, error) {
	obj, err := d.toPost()
	if err != nil {
		return nil, err
	}
	obj.SetGenerateName("dry-run-")
	obj.SetName(name)
	err = d.owner.client.Create(ctx, obj, client.DryRunAll, d.owner.fieldManager, client.FieldValidation(metav1.FieldValidationStrict))
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", d, withoutValues(err))
	}
	return obj, nil
}

// applyTo applies the object to the live one. If the live object has changed since it was read, applyTo reads it and
// tries once more, unless it is not ours any more: the cache may show an owner reference that somebody has removed. An
// object with generated keys is left to the next reconcile. applyTo returns the live object after and before the apply.
func (a *applier) applyTo(ctx context.Context, d *desired, live client.Object) (answer, before client.Object, err error) {
	answer, err = a.serverSideApply(ctx, d, live)
	if !apierrors.IsConflict(err) || len(d.generate) > 0 { // another version may have other values of generated keys
		return answer, live, err
	}
	current, readErr := a.readLive(ctx, d)
	if readErr != nil || current.GetUID() != live.GetUID() || record.LastAppliedOf(current) != record.LastAppliedOf(live) {
		return nil, live, err // a lost race
	}
	if err := d.owner.mayWrite(d, current); err != nil {
		return nil, live, err
	}
	answer, err = a.serverSideApply(ctx, d, current)
	return answer, current, err
}

// serverSideApply applies the object to the live one. It is forced: a field of ours that another manager took is drift.
// The UID and the resource version are preconditions, so that the apply neither creates an object nor writes one that
// has got another owner.
func (a *applier) serverSideApply(ctx context.Context, d *desired, live client.Object, options ...client.PatchOption) (client.Object, error) {
	body, err := d.kind.comparer.AppendApply(nil, d.toSend(record.ByApply), d.kind.gvk, string(live.GetUID()), live.GetResourceVersion())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	answer, err := a.applyPatch(ctx, d, body, d.owner.fieldManager, options...)
	if isInvalid(err) {
		if without := withoutNulls(body, err); without != nil {
			answer, err = a.applyPatch(ctx, d, without, d.owner.fieldManager, options...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", d, withoutValues(duplicateNodePortAsInvalid(unknownFieldAsInvalid(lostRaceAsConflict(err)))))
	}
	return answer, nil
}

// withoutNulls returns what is applied without the nulls that a refusal names, or nil if it names none. A null of a field that
// is not nullable is dropped from a POST, and refused in an apply. [Apply] does not know the schemas of custom resources, so it
// sends all nulls.
func withoutNulls(body []byte, refusal error) []byte {
	tree, found := map[string]any{}, false
	if utiljson.Unmarshal(body, &tree) != nil {
		return nil
	}
	for _, cause := range causesOf(refusal, tree) {
		last := len(cause) - 1
		name, isField := cause[last].(string)
		fields, _ := applyschema.At(tree, cause[:last]).(map[string]any)
		if value, set := fields[name]; isField && set && value == nil {
			delete(fields, name)
			found = true
		}
	}
	if !found {
		return nil
	}
	without, err := json.Marshal(tree)
	if err != nil {
		return nil
	}
	return without
}

// applyPatch sends a forced server-side apply, and returns the API server's answer.
func (a *applier) applyPatch(ctx context.Context, d *desired, body []byte, manager client.FieldOwner, options ...client.PatchOption) (client.Object, error) {
	answer := d.kind.empty()
	answer.SetNamespace(d.object.GetNamespace())
	answer.SetName(d.object.GetName())
	err := d.owner.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, body), append(options, manager, client.ForceOwnership)...)
	return answer, err
}

// jsonPatch sends a JSON patch of the live object, and replaces live by the API server's answer.
func (a *applier) jsonPatch(ctx context.Context, d *desired, live client.Object, patch []byte, options ...client.PatchOption) error {
	return d.owner.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), append(options, d.owner.fieldManager)...)
}

// patchLocked sends a merge patch of the metadata, and of the spec unless it is nil, with the UID and the resource
// version of the live object as preconditions. It writes the API server's answer into answer, which is an empty object,
// with its kind if it is not typed.
func (a *applier) patchLocked(ctx context.Context, o *owner, live, answer client.Object, metadata, spec map[string]any) error {
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	content := map[string]any{"metadata": metadata}
	if spec != nil {
		content["spec"] = spec
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return err
	}
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	return lostRaceAsConflict(o.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), o.fieldManager))
}

// deleteExactly deletes an object, unless it has changed since it was read: it may belong to another owner or set now.
// It returns the API server's errors, also a conflict.
func deleteExactly(ctx context.Context, c client.Client, obj client.Object, policy metav1.DeletionPropagation) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return c.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(policy))
}

// liveReader returns a reader that reads past the cache. Without a manager it returns the client. Read unstructured
// objects and metadata with it: a manager's client does not cache these unless it was configured to.
func (a *applier) liveReader(o *owner) client.Reader {
	if a.apiReader != nil {
		return a.apiReader
	}
	return o.client
}

// readLive reads the object past the cache.
func (a *applier) readLive(ctx context.Context, d *desired) (client.Object, error) {
	live := d.kind.empty()
	if a.apiReader != nil {
		return live, a.apiReader.Get(ctx, d.key(), live)
	}
	u, err := a.readTree(ctx, d)
	if err != nil {
		return nil, err
	}
	return live, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, live)
}

// readTree reads the object past the cache, with fields that its Go type may not have.
func (a *applier) readTree(ctx context.Context, d *desired) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(d.kind.gvk)
	return u, a.liveReader(d.owner).Get(ctx, d.key(), u)
}

// listLive lists objects of a kind in a namespace past the cache, which may not show our last write yet.
func (a *applier) listLive(ctx context.Context, o *owner, gvk schema.GroupVersionKind, namespace string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := a.liveReader(o).List(ctx, list, append(options, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("list %s objects: %w", gvk.Kind, err)
	}
	return list.Items, nil
}

// lostRaceAsConflict turns the refusal of a precondition on the UID into a conflict. If the object was deleted or
// replaced since it was read, the API server answers 409, or 422 on metadata.uid as if the object were invalid.
func lostRaceAsConflict(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return err
	}
	causes := status.Status().Details.Causes
	if len(causes) == 0 {
		return err
	}
	for _, cause := range causes {
		if cause.Field != "metadata.uid" {
			return err
		}
	}
	return withStatus(status, metav1.StatusReasonConflict, http.StatusConflict)
}

// unknownFieldAsInvalid turns the 500 with which the API server answers an apply of a field that its version does not
// have into a 422: the object is invalid, and the server is not at fault.
func unknownFieldAsInvalid(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInternalError(err) || !errors.As(err, &status) || !isUntypable(err) {
		return err
	}
	return withStatus(status, metav1.StatusReasonInvalid, http.StatusUnprocessableEntity)
}

// duplicateNodePortAsInvalid turns the 500 with which the API server answers two ports with one node port into a 422.
func duplicateNodePortAsInvalid(err error) error {
	var status apierrors.APIStatus
	if !isDuplicateNodePort(err) || !errors.As(err, &status) {
		return err
	}
	return withStatus(status, metav1.StatusReasonInvalid, http.StatusUnprocessableEntity)
}

// isUntypable reports whether the API server refused an apply that does not fit its schema, or that has a key twice.
func isUntypable(err error) bool {
	return strings.Contains(err.Error(), "failed to create typed patch object")
}

func withStatus(status apierrors.APIStatus, reason metav1.StatusReason, code int32) error {
	err := &apierrors.StatusError{ErrStatus: status.Status()}
	err.ErrStatus.Reason, err.ErrStatus.Code = reason, code
	return err
}

// refusalError is an error of the API server without the objects that it quotes. A quoted pod template would show
// environment variables to everybody who reads the owner's status or the log.
type refusalError struct {
	error
	message string
}

func (r *refusalError) Error() string { return r.message }
func (r *refusalError) Unwrap() error { return r.error }

func withoutValues(err error) error {
	message := err.Error()
	from, to := strings.Index(message, "{"), strings.LastIndex(message, "}")
	if from < 0 || to < from {
		return err
	}
	return &refusalError{error: err, message: message[:from] + "{…}" + message[to+1:]}
}

// withSizeRemedy says what to do about an object that is too large for etcd. A managed fields entry has the name of each field and
// a few more bytes, so the entry of a ConfigMap with many keys may be as large as its values. The API server creates an object
// without managed fields if it is too large with them, and refuses to apply it.
func withSizeRemedy(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if !apierrors.IsRequestEntityTooLargeError(err) && !strings.Contains(text, "code = ResourceExhausted") && !strings.Contains(text, "etcdserver: request is too large") {
		return err
	}
	return fmt.Errorf("%w: etcd takes 1.5 MiB a request by default, and an object and its managed fields have to fit into one: split the object, and delete the live object if it exists", err)
}
