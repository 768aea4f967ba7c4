package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// ErrOwnerRecreated is for an object whose owner was deleted, and another one of its name created.
var ErrOwnerRecreated = errors.New("the owner was deleted and created anew")

// OwnerReference names an owner that does not control: the object goes when all its owners have gone.
func OwnerReference(c client.Client, owner client.Object) (metav1.OwnerReference, error) {
	kind, err := apiutil.GVKForObject(owner, c.Scheme())
	if err != nil {
		return metav1.OwnerReference{}, err
	}
	return metav1.OwnerReference{
		APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(false),
	}, nil
}

// PatchOwnerReference lets an object go with another one that does not control it, by one patch; without a
// request if it does so already. References to others of the owner's kind that do not control it
// either are replaced. obj gets the answer's metadata, as [PatchAnnotations] has it, and it may be the pass's own object.
//
// If the owner was deleted and created anew, so that obj is about to be collected with the former
// one, the error is [ErrOwnerRecreated], and nothing is sent.
//
// Of an owner that is being deleted nothing is set: where it leaves what it owned (orphans), the API server has just
// taken the reference off.
//
// Both have to be in one namespace, or the owner in none: anything else is collected at once.
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
			return false, fmt.Errorf("%w: %s goes with the %s %s that it belonged to: create another one for the new %s",
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
	// The list is replaced whole, so it must be the one that was read.
	if err := patchMetadata(ctx, c, obj, "set the owner of", map[string]any{"ownerReferences": want, "resourceVersion": obj.GetResourceVersion()}); err != nil {
		return false, err
	}
	return true, nil
}
