package ownedresources

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// recordPrefixes are the prefixes of the keys of records on owners. Whoever may write the owner can write any value
// there, so a value says where to look and what to try, and never proves anything about other objects: before a
// deletion, the live object has to show that it is ours.
var recordPrefixes = []string{record.RunPrefix, record.ExpansionPrefix}

// Some facts must outlive the child that they are about: that a Job has run, or that a StatefulSet is being replaced.
// They are stored in records on the owner, one annotation for each child. A record is written with the owner's resource
// version as precondition. So a process that sees an old version of the owner can never write one.

// withoutRecords returns the owner as the functions of the children get it: without its records. A function that copies
// the owner's annotations into a pod template would otherwise change what is desired with every record, and so a Job of
// [RunOnce] would be replaced for ever. It returns the owner itself if it has no record, and if the set writes none.
func (s *set) withoutRecords(obj client.Object) client.Object {
	isRecord := func(key, _ string) bool {
		return slices.ContainsFunc(recordPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}
	has := false
	for key := range obj.GetAnnotations() {
		has = has || isRecord(key, "")
	}
	if !has && !s.holdsObjects() {
		return obj
	}
	without := obj.DeepCopyObject().(client.Object)
	annotations := without.GetAnnotations()
	maps.DeleteFunc(annotations, isRecord)
	without.SetAnnotations(annotations)
	return without
}

// setRecord sets a record on the owner, or removes it if the value is empty. The error is a conflict if the owner has
// changed since it was read.
func (a *applier) setRecord(ctx context.Context, o *owner, key, value string) error {
	if o.object.GetAnnotations()[key] == value {
		return nil
	}
	var annotation any
	if value != "" {
		annotation = value
	}
	answer := &metav1.PartialObjectMetadata{}
	answer.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.reference.APIVersion, o.reference.Kind))
	if err := a.patchLocked(ctx, o, o.object, answer, map[string]any{"annotations": map[string]any{key: annotation}}, nil); err != nil {
		return fmt.Errorf("annotate %s: %w", o, err)
	}
	o.object.SetAnnotations(maps.Clone(answer.GetAnnotations()))
	o.object.SetLabels(maps.Clone(answer.GetLabels()))
	o.object.SetOwnerReferences(slices.Clone(answer.GetOwnerReferences()))
	o.object.SetResourceVersion(answer.GetResourceVersion())
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.Rebase(o.object)
	}
	return nil
}

// requireCurrent returns a conflict unless the owner is as the API server has it at this moment. [applier.confirm] makes sure
// only that it is not older than this process.
func (a *applier) requireCurrent(ctx context.Context, o *owner) error {
	live, err := a.readOwner(ctx, o)
	if err != nil {
		return err
	}
	if live == nil || live.GetUID() != o.reference.UID || live.GetResourceVersion() != o.object.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.reference.Kind}, o.reference.Name,
			fmt.Errorf("it was changed or deleted since version %q, and the cache does not show that yet", o.object.GetResourceVersion()))
	}
	return nil
}
