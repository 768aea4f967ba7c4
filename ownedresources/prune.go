package ownedresources

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// pruned remembers what an owner's children were when those that are not wanted were last
// looked for. It starts empty, so after a restart they are looked for once.
type pruned struct {
	seed    maphash.Seed
	mu      sync.Mutex
	byOwner map[types.UID]uint64
}

func newPruned() *pruned {
	return &pruned{seed: maphash.MakeSeed(), byOwner: map[types.UID]uint64{}}
}

// digest is the same for the same wanted names; it lives no longer than the process.
func (p *pruned) digest(wanted []desired) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, d := range wanted {
		for _, s := range [...]string{d.kind.gvk.Group, d.kind.gvk.Kind, d.object.GetNamespace(), d.object.GetName()} {
			h.WriteString(s)
			h.WriteByte(0)
		}
	}
	return h.Sum64()
}

func (p *pruned) is(owner types.UID, wanted uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.byOwner[owner]
	return ok && known == wanted
}

func (p *pruned) set(owner types.UID, wanted uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byOwner[owner] = wanted
}

// forget is for an owner of which a child was deleted: perhaps it is being deleted itself.
func (p *pruned) forget(child client.Object) {
	ref := metav1.GetControllerOfNoCopy(child)
	if ref == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byOwner, ref.UID)
}

// forgetOwner is for an owner that is gone.
func (p *pruned) forgetOwner(owner types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byOwner, owner)
}

// prune deletes what the set made for the owner and does not want any more; in a pass at its end.
// It lists only when what is wanted has changed, or for the first time; the list is the cache's.
func (s *ChildSet[T]) prune(ctx context.Context, owner *owner, want []desired) error {
	digest := s.pruned.digest(want)
	if s.pruned.is(owner.reference.UID, digest) {
		return nil
	}
	now := func(ctx context.Context) error { return s.pruneNow(ctx, owner, want, digest) }
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.AfterSteps(now)
		return nil
	}
	return now(ctx)
}

func (s *ChildSet[T]) pruneNow(ctx context.Context, owner *owner, want []desired, digest uint64) error {
	known, err := s.kinds(owner.client.Scheme())
	if err != nil {
		return err
	}
	defer s.applier.report(owner)
	// Before listing: what we wrote and the cache does not show yet has to be looked for again.
	settled := !s.applier.writes.Pending()
	for i, k := range known {
		if slices.Index(known, k) < i {
			continue
		}
		if err := s.pruneKind(ctx, owner, s.children[i].sample, k, want); err != nil {
			return err
		}
	}
	if settled {
		s.pruned.set(owner.reference.UID, digest)
	}
	return nil
}

func (s *ChildSet[T]) pruneKind(ctx context.Context, owner *owner, sample client.Object, k *kind, want []desired) error {
	list, err := s.list(ctx, owner, sample, k.gvk)
	if err != nil {
		return err
	}
	for _, obj := range list {
		ours := metav1.IsControlledBy(obj, &metav1.ObjectMeta{UID: owner.reference.UID}) && obj.GetAnnotations()[AnnotationSet] == s.name
		if m, _, _ := splitMark(obj.GetAnnotations()[AnnotationApplied]); !ours || m == foreign || obj.GetDeletionTimestamp() != nil ||
			slices.ContainsFunc(want, func(d desired) bool { return d.is(k.gvk, obj) }) {
			continue
		}
		if err := s.applier.confirm(ctx, owner); err != nil {
			return err
		}
		// The version too: what the cache shows as ours may have another owner, or set, by now.
		uid, version := obj.GetUID(), obj.GetResourceVersion()
		err := owner.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s, which is no longer wanted: %w", k.gvk.Kind, client.ObjectKeyFromObject(obj), err)
		}
		if err == nil {
			s.applier.tell(owner, k, obj, deedDeleted, "")
		}
	}
	return nil
}

// list gives the owner's children of a kind, and others. They may be the cache's own.
func (s *ChildSet[T]) list(ctx context.Context, owner *owner, sample client.Object, gvk schema.GroupVersionKind) ([]client.Object, error) {
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	var list client.ObjectList
	if _, untyped := sample.(runtime.Unstructured); !untyped {
		if typed, err := owner.client.Scheme().New(listKind); err == nil {
			list, _ = typed.(client.ObjectList)
		}
	}
	if list == nil {
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(listKind)
		list = u
	}
	options := []client.ListOption{client.InNamespace(owner.namespace), client.UnsafeDisableDeepCopy}
	reader := client.Reader(owner.client)
	if s.cache != nil { // which has the index, also for unstructured objects
		reader = s.cache
		options = append(options, client.MatchingFields{controllerIndex: controllerBucket(owner.reference.UID)})
	}
	if err := reader.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("list of %s's children: %w", owner, err)
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
