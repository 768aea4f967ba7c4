package set

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/passcontext"
)

// What a child's function builds depends only on the owner and on the inputs. So if the owner, the inputs and the live children are the
// same as in a reconcile that found nothing to do, there is still nothing to do. Such an owner is called settled.

// Settled reports whether the owner is settled: Reconcile would find everything as desired and ready, and would change nothing. If that is
// not certain, it reports false. It sends a request only if an input does, or if a child is not read from the cache. It does not change
// obj, which may be in the cache's memory.
//
// It is certain if all of these hold:
//
//   - The last Reconcile of obj ran as a step of package reconcile, returned nil and changed nothing.
//   - The cache shows obj, each child, and each object that an input has read in the versions that the last Reconcile saw. It shows no
//     other child.
//   - The API server serves the same kinds.
//   - No event of obj or of a child came since.
//
// If Settled reports true, package reconcile does not call Reconcile.
func (s *Set) Settled(ctx context.Context, c client.Client, obj client.Object) bool {
	last := s.Owners.settledOf(obj.GetUID())
	if last.versions == 0 {
		return false
	}
	more := last.more
	if more == nil {
		more = &settledMore{}
	}
	if s.ifServed {
		release, same := s.servedAs(c, more.served)
		defer release()
		if !same {
			return false
		}
	}
	children := s.childIndex.ChildrenOf(obj.GetUID())
	if s.Cache == nil {
		children = more.children
	}
	if s.ifServed { // the index may still have children of a kind that is not served any more
		children = slices.DeleteFunc(slices.Clone(children), func(child childindex.Name) bool { return more.served[child.Kind].leavesOut() })
	}
	if !s.areSettled(ctx, c, obj, children, last.versions) {
		return false
	}
	if len(more.reads) > 0 && !s.readsSettled(ctx, c, more) {
		return false
	}
	if report := passcontext.PurityCheck(ctx); report != nil {
		if err := s.checkPurity(ctx, c, obj, children, more); err != nil {
			report(err)
		}
	}
	return true
}

// canSettle reports whether a reconcile depends only on the owner, the inputs, the live children and the served kinds. With
// [ownedresources.Child.Anywhere] and [ownedresources.Child.Retain] it also depends on objects of deleted owners. These have no controller,
// so their events are not recorded. With [ownedresources.Child.RunOnce] it also depends on a Job that may not exist any more. So a set with
// such children is always reconciled. With [ownedresources.Child.ExpandVolumes] there is nothing to do for claims while the owner has no
// annotation about them, so the owner's version suffices.
func (s *Set) canSettle() bool {
	return !slices.ContainsFunc(s.Children, func(c *Child) bool {
		return c.Options.Anywhere || c.Options.Retain != nil || c.Options.RunOnce
	})
}

// areSettled reports whether the cache shows an owner and its children in the versions in which they were as desired. If the cache does not
// show our last write yet, it reports false.
func (s *Set) areSettled(ctx context.Context, c client.Client, owner client.Object, children []childindex.Name, versions uint64) bool {
	kinds, err := s.KindsIn(c.Scheme())
	if err != nil {
		return false
	}
	now := s.Owners.versionsOf(owner)
	for _, name := range children {
		place := watchedPlace(s.Children, kinds, int(name.Kind))
		k := kinds[place]
		if k.Comparer == nil { // the kind has no schema yet, see ChildKinds.uncompiled
			if k, err = s.compile(s.Children[place], c.Scheme()); err != nil {
				return false
			}
		}
		child, found := readSettled(ctx, c, s.Applier, k, name)
		if !found {
			return false
		}
		now.add(child)
	}
	return now.digest() == versions
}

// readSettled returns a child in the version that the cache shows. found is false if the child is not in the cache, or if the cache is
// older than our last write of the child.
func readSettled(ctx context.Context, c client.Client, a *apply.Applier, k *owned.Kind, name childindex.Name) (child settledChild, found bool) {
	live := k.Receivers.Get().(client.Object)
	defer k.Release(live)
	unseen := a.Writes.Unseen(live, name.NamespacedName)
	if c.Get(ctx, name.NamespacedName, live, apply.AsCached...) != nil || a.Writes.Newer(unseen, live) != live {
		return child, false
	}
	return settledChild{name, live.GetUID(), live.GetResourceVersion()}, true
}

// readsSettled reports whether the cache still shows the objects that inputs have read, in the versions in which they were read.
func (s *Set) readsSettled(ctx context.Context, c client.Client, last *settledMore) bool {
	r := &Reconciliation{Set: s, ctx: ctx, client: c}
	return last.ofReads == s.epochOfReads(c) && r.areCurrent(last.reads)
}

// settledBy returns what to remember of a reconcile that found nothing to do. If there may be something to do, it returns the zero value.
func settledBy(r *Reconciliation) (now settledOwner) {
	if !r.quiet || r.unknown || r.owner.Reference.UID == "" || r.Object.GetResourceVersion() == "" { // an object of controller-runtime's fake client has no UID
		return now
	}
	if pass := passcontext.FromContext(r.ctx); pass == nil || !pass.AsCached(r.owner.Object) {
		return now
	}
	if slices.ContainsFunc(r.objects, func(d owned.Declared) bool { return d.Live == nil }) {
		return now
	}
	more := &settledMore{ofReads: r.ofReads}
	versions := r.Set.Owners.versionsOf(r.Object)
	for i := range r.objects {
		d := &r.objects[i]
		name := childindex.Name{Kind: r.placeOf(d.Kind), NamespacedName: client.ObjectKeyFromObject(d.Object)}
		versions.add(settledChild{name, d.Live.GetUID(), d.Live.GetResourceVersion()})
		if r.Set.Cache == nil {
			more.children = append(more.children, name)
		}
	}
	if r.Set.ifServed {
		for i := range r.States {
			more.served = append(more.served, r.States[i].Served)
		}
	}
	for _, result := range r.inputs {
		more.reads = append(more.reads, result.reads...)
	}
	if r.Set.Cache != nil && !r.Set.ifServed && len(more.reads) == 0 {
		more = nil
	}
	return settledOwner{versions: versions.digest(), more: more}
}

// placeOf returns the index of the first child of a kind.
func (r *Reconciliation) placeOf(k *owned.Kind) int32 {
	return int32(slices.IndexFunc(r.Kinds, func(other *owned.Kind) bool { return other.GVK == k.GVK }))
}
