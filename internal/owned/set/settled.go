package set

import (
	"context"
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/passcontext"
)

// A child is a pure function of its owner and of its inputs. So while the owner, the inputs and the live children are
// the same as in a reconcile that found nothing to do, the owner is settled: there is nothing to build and nothing to
// compare.

// settledOwner is what a set found when it had nothing to do for an owner. There may be one for every owner, so it is small.
type settledOwner struct {
	versions uint64 // the digest of the versions of the owner and its children, 0 if there may be something to do
	epoch    uint64 // see package versions
	more     *settledMore
}

// settledMore is the rest of a settledOwner. It is nil for the most common sets.
type settledMore struct {
	children []childindex.Name   // only without a manager, since the index is empty then
	reads    []owned.ReadVersion // what the inputs have read
	ofReads  uint64              // the epoch of their versions
	served   []servedState       // the state of each child, in a set with the option IfServed
}

// settledChild is a live child that was as desired and ready.
type settledChild struct {
	childindex.Name
	uid     types.UID
	version string
}

// settledVersions is a digest of the versions of an owner and its children, in any order. It is valid in this process only.
type settledVersions struct {
	seed maphash.Seed
	sum  uint64
}

func (m *ownerMemory) versionsOf(owner client.Object) settledVersions {
	return settledVersions{m.seed, maphash.String(m.seed, owner.GetResourceVersion())}
}

func (v *settledVersions) add(child settledChild) { v.sum += maphash.Comparable(v.seed, child) }

// digest is never 0.
func (v *settledVersions) digest() uint64 { return max(v.sum, 1) }

// Settled reports whether an owner is settled: Reconcile would find everything as the last call of it left it,
// unchanged and ready. It reports false unless it is certain. It sends no request, unless an input does or a child is
// read past the cache, and does not change obj, which may be the cache's own.
//
// It is certain if all of these hold:
//
//   - The last call was made in a pass of package reconcile, returned nil and changed nothing.
//   - The cache shows obj, each child, and each object that an input has read in the versions that they had then, and no other
//     child.
//   - The same kinds are served.
//   - No event of obj or of a child came since.
//
// Package reconcile calls it, and then leaves the step out.
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
// [ownedresources.Child.Anywhere] and [ownedresources.Child.Retain] it also depends on objects of former owners. These have no
// controller, so their events are not noted. With [ownedresources.Child.RunOnce] it also depends on a Job that is gone. Sets with such
// children are never left out. With [ownedresources.Child.ExpandVolumes] there is nothing to do for claims while the owner has no
// annotation about them, so its version suffices.
func (s *Set) canSettle() bool {
	return !slices.ContainsFunc(s.Children, func(c *Child) bool {
		return c.Options.Anywhere || c.Options.Retain != nil || c.Options.RunOnce
	})
}

// areSettled reports whether the cache shows an owner and its children in the versions in which they were as desired. A write of
// ours that the cache does not show yet makes it another version.
func (s *Set) areSettled(ctx context.Context, c client.Client, owner client.Object, children []childindex.Name, versions uint64) bool {
	kinds, err := s.KindsIn(c.Scheme())
	if err != nil {
		return false
	}
	now := s.Owners.versionsOf(owner)
	for _, name := range children {
		place := watchedPlace(s.Children, kinds, int(name.Kind))
		k := kinds[place]
		if k.Comparer == nil { // see ChildKinds.uncompiled
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

// readSettled returns a child as the cache shows it. It returns false if the cache does not show it, or not yet as we wrote it.
func readSettled(ctx context.Context, c client.Client, a *apply.Applier, k *owned.Kind, name childindex.Name) (child settledChild, found bool) {
	live := k.Receivers.Get().(client.Object)
	defer k.Release(live)
	if c.Get(ctx, name.NamespacedName, live, apply.AsCached...) != nil || a.Writes.Newer(live) != live {
		return child, false
	}
	return settledChild{name, live.GetUID(), live.GetResourceVersion()}, true
}

// readsSettled reports whether the cache shows what the inputs have read in the same versions.
func (s *Set) readsSettled(ctx context.Context, c client.Client, last *settledMore) bool {
	r := &Reconciliation{Set: s, ctx: ctx, client: c}
	return last.ofReads == s.epochOfReads(c) && r.areCurrent(last.reads)
}

// settledBy returns what to remember of a reconcile that found nothing to do. It returns the zero value if there may be something
// to do.
func settledBy(r *Reconciliation) (now settledOwner) {
	if !r.quiet || r.unknown || r.owner.Reference.UID == "" || r.Object.GetResourceVersion() == "" { // controller-runtime's fake client sets no UID
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

// settledOf returns what a set found when it had nothing to do for an owner, the zero value if it may have something to do.
func (m *ownerMemory) settledOf(owner types.UID) settledOwner {
	m.mu.Lock()
	defer m.mu.Unlock()
	settled := m.ByUID[owner].settled
	if settled.epoch != m.versions.Current() {
		return settledOwner{}
	}
	return settled
}

// begin notes that a reconcile of the owner begins: events are noted from now on. If two reconcilers share a set, two
// reconciles may run at once. It returns the epoch of the versions that the reconcile is going to see.
func (m *ownerMemory) begin(owner types.UID) (epoch uint64) {
	m.change(owner, func(r *rememberedOwner) {
		r.disturbed = r.disturbed && r.running > 0
		r.running++
	})
	return m.versions.Current()
}

// end notes what a reconcile has found: the zero value if there may be something to do. It is not remembered if an event came
// during the reconcile.
func (m *ownerMemory) end(owner types.UID, epoch uint64, found settledOwner) {
	m.change(owner, func(r *rememberedOwner) {
		forgotten := r.running == 0 // the owner was deleted during the reconcile
		if !forgotten {
			r.running--
		}
		r.settled = settledOwner{}
		if !r.disturbed && !forgotten && found.versions != 0 {
			r.settled = found
			r.settled.epoch = epoch
		}
	})
}

// observe notes an event of an owner, or of an object that it controls: the owner is not settled any more. It reports
// whether it was.
func (m *ownerMemory) observe(owner types.UID) (forgot bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, found := m.ByUID[owner]
	if !found { // perhaps it is not an owner of ours
		return false
	}
	forgot = record.settled.versions != 0
	record.settled, record.disturbed = settledOwner{}, record.running > 0
	m.ByUID[owner] = record
	return forgot
}
