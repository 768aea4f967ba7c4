package ownedresources

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// prune deletes the children that the set wrote for the owner and that are not desired any more. In a pass of package
// reconcile it does so after all steps, if each of them succeeded or waits. It lists the children in the cache, and only if
// the desired names have changed, a child was deleted, the process is new, or the cache did not show a write of ours yet.
func (s *ChildSet[T]) prune(ctx context.Context, o *owner, children []declared) error {
	digest := s.applier.owners.digest(children)
	if s.applier.owners.isPruned(o.reference.UID, digest) {
		return nil
	}
	now := func(ctx context.Context) error { return s.pruneNow(ctx, o, children, digest) }
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.AfterSteps(now)
		return nil
	}
	return now(ctx)
}

func (s *ChildSet[T]) pruneNow(ctx context.Context, o *owner, children []declared, digest uint64) error {
	kinds, err := s.kindsIn(o.client.Scheme())
	if err != nil {
		return err
	}
	defer s.applier.emitEvents(o)
	// Pending is read before listing: the list lacks what we wrote and the cache does not show yet, so it has to be repeated.
	complete := !s.applier.writes.Pending()
	for i, k := range kinds {
		if slices.Index(kinds, k) < i {
			continue
		}
		if err := s.pruneKind(ctx, o, s.children[i].sample, k, children); err != nil {
			return err
		}
	}
	if complete {
		s.applier.owners.setPruned(o.reference.UID, digest)
	}
	return nil
}

func (s *ChildSet[T]) pruneKind(ctx context.Context, o *owner, sample client.Object, k *kind, children []declared) error {
	list, err := s.list(ctx, o, sample, k.gvk)
	if err != nil {
		return err
	}
	for _, obj := range list {
		if !s.isPrunable(o, k, obj, children) {
			continue
		}
		if err := s.applier.confirm(ctx, o); err != nil {
			return err
		}
		err := deleteExactly(ctx, o.client, obj)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s, which is no longer desired: %w", k.gvk.Kind, client.ObjectKeyFromObject(obj), err)
		}
		if err == nil {
			s.applier.record(o, k, obj, outcomeDeleted, "")
		}
	}
	return nil
}

// isPrunable reports whether a live object was written by this set for this owner, and is not among the children.
func (s *ChildSet[T]) isPrunable(o *owner, k *kind, live client.Object, children []declared) bool {
	return metav1.IsControlledBy(live, &metav1.ObjectMeta{UID: o.reference.UID}) &&
		live.GetAnnotations()[AnnotationSet] == s.name &&
		lastAppliedOf(live).method != byOthers &&
		live.GetDeletionTimestamp() == nil &&
		!slices.ContainsFunc(children, func(d declared) bool { return d.isNamed(k.gvk, live) })
}

// list returns objects of a kind, the owner's children among them. They may be the cache's own.
func (s *ChildSet[T]) list(ctx context.Context, o *owner, sample client.Object, gvk schema.GroupVersionKind) ([]client.Object, error) {
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	var list client.ObjectList
	if _, untyped := sample.(runtime.Unstructured); !untyped {
		if typed, err := o.client.Scheme().New(listKind); err == nil {
			list, _ = typed.(client.ObjectList)
		}
	}
	if list == nil {
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(listKind)
		list = u
	}
	options := []client.ListOption{client.InNamespace(o.namespace), client.UnsafeDisableDeepCopy}
	reader := client.Reader(o.client)
	if s.cache != nil { // it has the index, also for unstructured objects
		reader = s.cache
		options = append(options, client.MatchingFields{controllerIndex: controllerBucket(o.reference.UID)})
	}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list the children of %s: %w", o, err)
	}
	var objs []client.Object
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			objs = append(objs, obj)
		}
		return nil
	})
	return objs, err
}
