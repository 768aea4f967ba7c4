package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// PatchAnnotations sets and removes annotations of an object. It sends one patch that contains only these keys, and sends no
// request if nothing has to change. If a key is in both set and remove, it is set.
//
// obj gets the annotations, labels, owner references and resource version from the API server's answer. Everything else in
// obj stays. obj may be the object that the step reconciles. The patch then carries the resource version, and the pass
// continues with the answer.
//
// PatchAnnotations reports whether it changed anything. Errors of the client are wrapped. If obj is the object that the step
// reconciles and was changed since it was read, the error is a conflict (apierrors.IsConflict). For another object the patch
// carries only the UID: it never changes a later object of the same name, and does not conflict with other writers.
func PatchAnnotations(ctx context.Context, c client.Client, obj client.Object, set map[string]string, remove ...string) (changed bool, err error) {
	return patchKeys(ctx, c, obj, "annotate", "annotations", obj.GetAnnotations(), set, remove)
}

// PatchLabels does the same as [PatchAnnotations] for labels.
func PatchLabels(ctx context.Context, c client.Client, obj client.Object, set map[string]string, remove ...string) (changed bool, err error) {
	return patchKeys(ctx, c, obj, "label", "labels", obj.GetLabels(), set, remove)
}

func patchKeys(ctx context.Context, c client.Client, obj client.Object, verb, field string, have, set map[string]string, remove []string) (changed bool, err error) {
	difference := map[string]any{}
	for _, key := range remove {
		if _, ok := have[key]; ok {
			difference[key] = nil
		}
	}
	for key, value := range set {
		if is, ok := have[key]; !ok || is != value {
			difference[key] = value
		}
	}
	if len(difference) == 0 {
		return false, nil
	}
	if err := patchMetadata(ctx, c, obj, verb, map[string]any{field: difference}); err != nil {
		return false, err
	}
	return true, nil
}

// ErrOwnerRecreated is the error of [PatchOwnerReference] if the owner was deleted and another object of the same name was
// created.
// Test for it with errors.Is.
var ErrOwnerRecreated = errors.New("the owner was deleted and created anew")

// OwnerReference returns a reference to an owner that does not control the object. The garbage collector deletes the object
// when all its owners are gone. OwnerReference returns an error if the scheme of c does not have the owner's type.
func OwnerReference(c client.Client, owner client.Object) (metav1.OwnerReference, error) {
	kind, err := apiutil.GVKForObject(owner, c.Scheme())
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return metav1.OwnerReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(false),
	}, nil
}

// PatchOwnerReference makes owner an owner of obj that does not control obj. It sends one patch with the resource
// version of obj, and sends no request if owner is an owner already. If obj was changed since it was read, the error is a
// conflict (apierrors.IsConflict). owner replaces other owners of the same kind that do not control obj. obj is updated as
// in [PatchAnnotations], and may be the object that the step reconciles. PatchOwnerReference reports whether it changed
// anything.
//
// If the owner was deleted and created again, the garbage collector is about to delete obj together with the former
// owner. Then the error is [ErrOwnerRecreated], and nothing is sent.
//
// If the owner is being deleted, nothing is sent either: the deletion may orphan what the owner owned, and then the API
// server has just removed the reference.
//
// Both objects have to be in the same namespace, or the owner has to be cluster-scoped. Otherwise the garbage collector
// deletes obj at once. PatchOwnerReference does not check this.
func PatchOwnerReference(ctx context.Context, c client.Client, obj, owner client.Object) (changed bool, err error) {
	if owner.GetDeletionTimestamp() != nil {
		return false, nil
	}
	ref, err := OwnerReference(c, owner)
	if err != nil {
		return false, err
	}
	have := obj.GetOwnerReferences()
	for _, r := range have {
		if r.APIVersion == ref.APIVersion && r.Kind == ref.Kind && r.Name == ref.Name && r.UID != ref.UID {
			return false, fmt.Errorf("%w: %s is deleted with the former %s %s: create another one for the new %s",
				ErrOwnerRecreated, obj.GetName(), r.Kind, r.Name, r.Kind)
		}
	}
	want := slices.DeleteFunc(slices.Clone(have), func(r metav1.OwnerReference) bool {
		return r.APIVersion == ref.APIVersion && r.Kind == ref.Kind && r.UID != ref.UID && (r.Controller == nil || !*r.Controller)
	})
	if !slices.ContainsFunc(want, func(r metav1.OwnerReference) bool { return r.UID == ref.UID }) {
		want = append(want, ref)
	}
	if len(want) == len(have) && slices.EqualFunc(want, have, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }) {
		return false, nil
	}
	// A merge patch replaces the whole list of owners, so nobody may have changed the list since it was read: the
	// patch carries the resource version.
	if err := patchMetadata(ctx, c, obj, "set the owner of", map[string]any{"ownerReferences": want, "resourceVersion": obj.GetResourceVersion()}); err != nil {
		return false, err
	}
	return true, nil
}

// patchMetadata sends a merge patch of the metadata, and copies the metadata of the answer into obj. An error begins
// with verb.
func patchMetadata(ctx context.Context, c client.Client, obj client.Object, verb string, metadata map[string]any) error {
	if uid := obj.GetUID(); uid != "" {
		metadata["uid"] = uid // so the patch never changes a later object of the same name
	}
	h, ofPass := handleFrom(ctx), false
	h.use(func(p *pass) { ofPass = p.object.owns(obj) })
	if ofPass { // the pass writes this object again later, so it continues with the answer
		metadata["resourceVersion"] = obj.GetResourceVersion()
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Errorf("kind of %T: %w: add its types to the scheme", obj, err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
	answer.SetGroupVersionKind(kind)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("%s %s %s: %w", verb, kind.Kind, client.ObjectKeyFromObject(obj), err)
	}
	obj.SetAnnotations(maps.Clone(answer.GetAnnotations()))
	obj.SetLabels(maps.Clone(answer.GetLabels()))
	obj.SetOwnerReferences(slices.Clone(answer.GetOwnerReferences()))
	obj.SetResourceVersion(answer.GetResourceVersion())
	if ofPass {
		h.use(func(p *pass) { p.object.rebase() })
	}
	return nil
}
