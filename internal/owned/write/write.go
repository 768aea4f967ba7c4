package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/applyschema"
	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/plan"
	"github.com/opblocks/opblocks/internal/record"
)

// TryCreation returns what the object would become if it were created under another name, by a dry run. It sends at most one request for
// each [owned.Desired].
func TryCreation(ctx context.Context, d *owned.Desired) (client.Object, error) {
	if d.Trial == nil {
		obj, err := PostDryRun(ctx, d, "")
		d.Trial = &owned.Trial{Object: obj, Err: err}
	}
	return d.Trial.Object, d.Trial.Err
}

// Post creates a child, and writes the API server's answer into it. A server-side apply can create an object too. But if the object exists
// and the cache does not show it, the apply would take it over.
func Post(ctx context.Context, o *owned.Owner, child client.Object) error {
	return o.Client.Create(ctx, child, o.FieldManager, client.FieldValidation(metav1.FieldValidationStrict))
}

// PostDryRun returns what the object would become if it were created. If name is empty, the API server generates one.
func PostDryRun(ctx context.Context, d *owned.Desired, name string) (client.Object, error) {
	obj, err := plan.ToPost(d)
	if err != nil {
		return nil, err
	}
	obj.SetGenerateName("dry-run-")
	obj.SetName(name)
	err = d.Owner.Client.Create(ctx, obj, client.DryRunAll, d.Owner.FieldManager, client.FieldValidation(metav1.FieldValidationStrict))
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", d, WithoutValues(err))
	}
	return obj, nil
}

// ApplyTo applies the object to the live one. If the live object has changed since it was read, ApplyTo reads it again and tries once more.
// It does not try again if the object now has another UID, is not ours any more, or has another annotation opblocks.dev/applied: the cache
// may show an owner reference that somebody has removed. An object with generated keys is left to the next reconcile. ApplyTo returns the
// live object after and before the apply.
func ApplyTo(ctx context.Context, d *owned.Desired, live client.Object) (answer, before client.Object, err error) {
	answer, err = ServerSideApply(ctx, d, live)
	if !apierrors.IsConflict(err) || len(d.Generate) > 0 { // in another version, generated keys may have other values
		return answer, live, err
	}
	current, readErr := d.ReadLive(ctx)
	if readErr != nil || current.GetUID() != live.GetUID() || record.LastAppliedOf(current) != record.LastAppliedOf(live) {
		return nil, live, err // another writer was faster
	}
	if err := d.Owner.MayWrite(d, current); err != nil {
		return nil, live, err
	}
	answer, err = ServerSideApply(ctx, d, current)
	return answer, current, err
}

// ServerSideApply applies the object to the live one. The apply is forced: if another manager has taken a field of ours, we take it back.
// The UID and the resource version are preconditions, so that the apply neither creates an object nor writes one that has got another
// owner.
func ServerSideApply(ctx context.Context, d *owned.Desired, live client.Object, options ...client.PatchOption) (client.Object, error) {
	body, err := bodyOf(d, live)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	answer, err := applyPatch(ctx, d, body, d.Owner.FieldManager, options...)
	if plan.IsInvalid(err) {
		if without := withoutNulls(body, err); without != nil {
			answer, err = applyPatch(ctx, d, without, d.Owner.FieldManager, options...)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("apply %s: %w", d, WithoutValues(duplicateNodePortAsInvalid(unknownFieldAsInvalid(lostRaceAsConflict(err)))))
	}
	return answer, nil
}

// bodyOf returns the body of an apply to a live object.
func bodyOf(d *owned.Desired, live client.Object) ([]byte, error) {
	if d.Admitted == nil {
		return d.Kind.Comparer.AppendApply(nil, plan.ToSend(d, record.ByApply), d.Kind.GVK, string(live.GetUID()), live.GetResourceVersion())
	}
	tree, err := plan.Tree(d, record.ByApply)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: tree}
	object.SetGroupVersionKind(d.Kind.GVK)
	object.SetUID(live.GetUID())
	object.SetResourceVersion(live.GetResourceVersion())
	return object.MarshalJSON()
}

// withoutNulls returns the body of an apply without the nulls that a refusal names. If the refusal names no null, it returns nil. If a
// field is not nullable, the API server drops a null from a POST, and refuses it in an apply. [ownedresources.Apply] does not know the
// schemas of custom resources, so it sends all nulls.
func withoutNulls(body []byte, refusal error) []byte {
	tree, found := map[string]any{}, false
	if utiljson.Unmarshal(body, &tree) != nil {
		return nil
	}
	for _, cause := range plan.CausesOf(refusal, tree) {
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
func applyPatch(ctx context.Context, d *owned.Desired, body []byte, manager client.FieldOwner, options ...client.PatchOption) (client.Object, error) {
	answer := emptyAnswer(d)
	err := d.Owner.Client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, body), append(options, manager, client.ForceOwnership)...)
	return answer, err
}

// jsonPatch sends a JSON patch, and returns the API server's answer.
func jsonPatch(ctx context.Context, d *owned.Desired, patch []byte, options ...client.PatchOption) (client.Object, error) {
	answer := emptyAnswer(d)
	err := d.Owner.Client.Patch(ctx, answer, client.RawPatch(types.JSONPatchType, patch), append(options, d.Owner.FieldManager)...)
	return answer, err
}

// emptyAnswer returns an object with only the name, for the answer to a patch. The answer is decoded into it: if it had fields that the
// answer lacks, they would stay.
func emptyAnswer(d *owned.Desired) client.Object {
	answer := d.Kind.Empty()
	answer.SetNamespace(d.Object.GetNamespace())
	answer.SetName(d.Object.GetName())
	return answer
}

// unknownFieldAsInvalid turns a 500 into a 422 if an apply has sent a field that the API server does not know: the object is invalid, and
// the server is not at fault.
func unknownFieldAsInvalid(err error) error {
	var status apierrors.APIStatus
	if !apierrors.IsInternalError(err) || !errors.As(err, &status) || !plan.IsUntypable(err) {
		return err
	}
	return withStatus(status, metav1.StatusReasonInvalid, http.StatusUnprocessableEntity)
}

// duplicateNodePortAsInvalid turns a 500 into a 422 if the API server has refused two ports with the same node port.
func duplicateNodePortAsInvalid(err error) error {
	var status apierrors.APIStatus
	if !plan.IsDuplicateNodePort(err) || !errors.As(err, &status) {
		return err
	}
	return withStatus(status, metav1.StatusReasonInvalid, http.StatusUnprocessableEntity)
}

// refusalError is an error of the API server without the objects that it quotes. A quoted pod template would show the values of environment
// variables to everybody who reads the owner's status or the log.
type refusalError struct {
	error
	message string
}

func (r *refusalError) Error() string { return r.message }
func (r *refusalError) Unwrap() error { return r.error }

// environmentValue matches the path of an environment variable, and the value that the API server quotes after it.
var environmentValue = regexp.MustCompile(`([eE]nv[a-zA-Z]*[.[][^\s:]*)(: (?:Invalid|Unsupported|Duplicate) value: )("(?:[^"\\]|\\.)*"|[^\s:,"{[]+)`)

// withoutEnvironment replaces the value of an environment variable that the API server quotes. It keeps the name of the variable, and the
// reference to its value.
func withoutEnvironment(quoted string) string {
	part := environmentValue.FindStringSubmatch(quoted)
	if path := part[1]; strings.HasSuffix(path, "].name") || strings.Contains(path, ".valueFrom.") {
		return quoted
	}
	return part[1] + part[2] + `"(hidden)"`
}

// WithoutValues returns an error of the API server without the objects and the environment variables that it quotes.
func WithoutValues(err error) error {
	message := environmentValue.ReplaceAllStringFunc(err.Error(), withoutEnvironment)
	if from, to := strings.Index(message, "{"), strings.LastIndex(message, "}"); from >= 0 && to > from {
		message = message[:from] + "{…}" + message[to+1:]
	}
	if message == err.Error() {
		return err
	}
	return &refusalError{error: err, message: message}
}

// WithSizeRemedy adds to an error what to do about an object that is too large for etcd. A managed fields entry has the name of each field
// and a few more bytes, so the entry of a ConfigMap with many keys may be as large as its values. If an object is too large with its
// managed fields, the API server creates it without them, and refuses to apply it.
func WithSizeRemedy(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if !apierrors.IsRequestEntityTooLargeError(err) && !strings.Contains(text, "code = ResourceExhausted") && !strings.Contains(text, "etcdserver: request is too large") {
		return err
	}
	return fmt.Errorf("%w: etcd takes 1.5 MiB a request by default, and an object and its managed fields have to fit into one: split the object, and delete the live object if it exists", err)
}

// RecordRewritten stores a hash of the differences between what was sent and what the API server stored, in the annotation
// opblocks.dev/applied. Without the hash, every process that does not remember the differences, and every call of [ownedresources.Apply],
// would send the object again. This takes a second write, which is sent only if the hash has changed: the first write already carried the
// hash of the write before it.
//
// RecordRewritten ignores errors. Without the hash, a process that does not remember the differences applies the object again.
func RecordRewritten(ctx context.Context, d *owned.Desired, answer client.Object, rewritten string) client.Object {
	last := record.LastAppliedOf(answer)
	if last.Rewritten == rewritten || last.Method == record.ByOthers {
		return answer
	}
	before := last.String()
	last.Rewritten = rewritten
	patch, err := json.Marshal([]plan.JSONPatchOperation{
		{Op: "test", Path: "/metadata/uid", Value: answer.GetUID()}, {Op: "test", Path: plan.AnnotationPointer, Value: before}, {Op: "replace", Path: plan.AnnotationPointer, Value: last.String()},
	})
	if err != nil {
		return answer
	}
	recorded, err := jsonPatch(ctx, d, patch)
	if err != nil {
		return answer
	}
	return recorded
}

// Unmark removes the label and the annotations that name the owner (the mark) from a live object, which then belongs to nobody. The
// resource version is a precondition.
func Unmark(ctx context.Context, o *owned.Owner, k *owned.Kind, live client.Object) error {
	isMark := func(k record.ChildKey) bool { return k.By == record.SetByMark }
	none := func(keys []string) map[string]any {
		values := map[string]any{}
		for _, key := range keys {
			values[key] = nil
		}
		return values
	}
	err := PatchLocked(ctx, o, live, k.Empty(), map[string]any{
		"labels": none(record.OnChildren(record.AsLabel, isMark)), "annotations": none(record.OnChildren(record.AsAnnotation, isMark)),
	}, nil)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take the marks off %s: %w", k.Describe(live), err)
	}
	return nil
}
