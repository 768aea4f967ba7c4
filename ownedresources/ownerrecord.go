package ownedresources

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// recordPrefixes are the prefixes of the keys by which this package reads annotations of owners. Whoever may write the owner can
// write any value there, so a value says where to look and what to try, and never proves anything about other objects: before
// a deletion, the live object has to show that it is ours.
var recordPrefixes = []string{RunOncePrefix, ExpandVolumesPrefix}

// Some facts must outlive the child that they are about: that a Job has run, or that a StatefulSet is being replaced. They
// are annotations of the owner, one for each child, and are written with the owner's resource version as precondition. So a
// process that sees the past can never write one.

// maxAnnotationName is the longest name of an annotation behind the slash.
const maxAnnotationName = 63

// recordKey returns the key of the annotation of an owner that is about a child. It is the prefix and the child's name, with
// the namespace and an underscore in front if that is not the owner's. A name that is too long ends in a hash.
func recordKey(prefix string, o *owner, child metav1.Object) string {
	name := child.GetName()
	if namespace := child.GetNamespace(); namespace != o.namespace {
		name = namespace + "_" + name
	}
	if len(name) > maxAnnotationName {
		hash := sumOf([]byte(name))
		name = name[:maxAnnotationName-9] + "-" + string(hash[:8])
	}
	return prefix + name
}

// withoutRecords returns the owner as the functions of the children get it: without these annotations. A function that copies
// the owner's annotations into a pod template would otherwise change what is desired with every record, and so a Job of
// [RunOnce] would be replaced for ever. It returns the owner itself if it has no such annotation, and gets none meanwhile.
func (s *ChildSet[T]) withoutRecords(obj T) T {
	isRecord := func(key, _ string) bool {
		return slices.ContainsFunc(recordPrefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	}
	has := false
	for key := range obj.GetAnnotations() {
		has = has || isRecord(key, "")
	}
	if !has && !s.needsRelease() {
		return obj
	}
	without := obj.DeepCopyObject().(T)
	annotations := without.GetAnnotations()
	maps.DeleteFunc(annotations, isRecord)
	without.SetAnnotations(annotations)
	return without
}

// setRecord sets an annotation of the owner, or removes it if the value is empty. The error is a conflict if the owner has
// changed since it was read.
func (a *applier) setRecord(ctx context.Context, o *owner, key, value string) error {
	if o.object.GetAnnotations()[key] == value {
		return nil
	}
	var annotation any
	if value != "" {
		annotation = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.reference.UID, "resourceVersion": o.object.GetResourceVersion(), "annotations": map[string]any{key: annotation},
	}})
	if err != nil {
		return err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.object.GetNamespace(), Name: o.object.GetName()}}
	answer.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.reference.APIVersion, o.reference.Kind))
	if err := o.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), o.fieldManager); err != nil {
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

// liveReader returns what reads past the cache.
func (a *applier) liveReader(o *owner) client.Reader {
	if a.apiReader != nil {
		return a.apiReader
	}
	return o.client // a manager's client does not cache unstructured objects by default
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
