package set

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/passcontext"
)

// A child is a pure function of its owner and of its inputs. So while the owner, the inputs and the live children are
// the same as in a reconcile that found nothing to do, the owner is settled: there is nothing to build and nothing to
// compare.

// settledOwner is what a set found when it had nothing to do for an owner.
type settledOwner struct {
	version  string // the resource version of the owner
	pruned   uint64 // see rememberedOwner: it changes when the children have to be listed again
	epoch    uint64 // see package versions
	children []settledChild
	reads    []owned.ReadVersion // what the inputs have read
	ofReads  uint64              // the epoch of their versions
	served   []servedState       // the state of each child, in a set with the option IfServed
}

// settledChild is a live child that was as desired and ready.
type settledChild struct {
	kind    *owned.Kind
	name    types.NamespacedName
	uid     types.UID
	version string
}

// Settled reports whether an owner is settled: Reconcile would find everything as the last call of it left it,
// unchanged and ready. It reports false unless it is certain. It sends no request, unless an input does or a child is
// read past the cache, and does not change obj, which may be the cache's own.
//
// It is certain if all of these hold:
//
//   - The last call was made in a pass of package reconcile, returned nil and changed nothing.
//   - The cache shows obj, each child, and each object that an input has read in the versions that they had then.
//   - The same kinds are served.
//   - No event of obj or of a child came since.
//
// Package reconcile calls it, and then leaves the step out.
func (s *Set) Settled(ctx context.Context, c client.Client, obj client.Object) bool {
	last := s.Owners.settledOf(obj.GetUID())
	if last == nil || last.version != obj.GetResourceVersion() {
		return false
	}
	if s.ifServed {
		release, same := s.servedAs(c, last.served)
		defer release()
		if !same {
			return false
		}
	}
	for i := range last.children {
		if !isSettled(ctx, s.Applier, c, &last.children[i]) {
			return false
		}
	}
	if len(last.reads) > 0 && !s.readsSettled(ctx, c, last) {
		return false
	}
	if report := passcontext.PurityCheck(ctx); report != nil {
		if err := s.checkPurity(ctx, c, obj, last); err != nil {
			report(err)
		}
	}
	return true
}

// canSettle reports whether a reconcile depends only on the owner, the inputs, the live children and the served kinds. With
// [ownedresources.Anywhere] and [ownedresources.Child.Retain] it also depends on objects of former owners. These have no
// controller, so their events are not noted. With [ownedresources.RunOnce] it also depends on a Job that is gone. Sets with such
// children are never left out. With [ownedresources.ExpandVolumes] there is nothing to do for claims while the owner has no
// annotation about them, so its version suffices.
func (s *Set) canSettle() bool {
	return !slices.ContainsFunc(s.Children, func(c *Child) bool {
		return c.Options.Anywhere || c.Options.Retain != nil || c.Options.RunOnce
	})
}

// isSettled reports whether the cache shows a child in the version in which it was as desired. A write of ours that the cache
// does not show yet makes it another version.
func isSettled(ctx context.Context, a *apply.Applier, c client.Client, child *settledChild) bool {
	live := child.kind.Receivers.Get().(client.Object)
	defer child.kind.Release(live)
	return c.Get(ctx, child.name, live, apply.WithoutCopy) == nil &&
		live.GetResourceVersion() == child.version && live.GetUID() == child.uid && a.Writes.Newer(live) == live
}

// readsSettled reports whether the cache shows what the inputs have read in the same versions.
func (s *Set) readsSettled(ctx context.Context, c client.Client, last *settledOwner) bool {
	r := &Reconciliation{Set: s, ctx: ctx, client: c}
	return last.ofReads == s.epochOfReads(c) && r.areCurrent(last.reads)
}

// settledBy returns what to remember of a reconcile that found nothing to do. It returns nil if there may be something to do.
func settledBy(r *Reconciliation) *settledOwner {
	version := r.Object.GetResourceVersion()
	if !r.quiet || r.unknown || r.owner.Reference.UID == "" || version == "" { // controller-runtime's fake client sets no UID
		return nil
	}
	if pass := passcontext.FromContext(r.ctx); pass == nil || !pass.AsCached(r.owner.Object) {
		return nil
	}
	now := &settledOwner{version: version, children: make([]settledChild, len(r.objects))}
	for i := range r.objects {
		d := &r.objects[i]
		if d.Live == nil {
			return nil
		}
		now.children[i] = settledChild{d.Kind, client.ObjectKeyFromObject(d.Object), d.Live.GetUID(), d.Live.GetResourceVersion()}
	}
	if r.Set.ifServed {
		for i := range r.States {
			now.served = append(now.served, r.States[i].Served)
		}
	}
	for _, result := range r.inputs {
		now.reads = append(now.reads, result.reads...)
	}
	now.ofReads = r.ofReads
	return now
}

func (m *ownerMemory) settledOf(owner types.UID) *settledOwner {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.ByUID[owner]
	if record.settled == nil || record.settled.pruned != record.Pruned || record.settled.epoch != m.versions.Current() {
		return nil
	}
	return record.settled
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

// end notes what a reconcile has found: nil if there may be something to do. It is not remembered if an event came
// during the reconcile.
func (m *ownerMemory) end(owner types.UID, epoch uint64, found *settledOwner) {
	m.change(owner, func(r *rememberedOwner) {
		r.running = max(0, r.running-1) // the owner may have been forgotten during the reconcile
		if r.settled = found; r.disturbed || r.Pruned == 0 {
			r.settled = nil
		}
		if r.settled != nil {
			r.settled.pruned, r.settled.epoch = r.Pruned, epoch
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
	forgot = record.settled != nil
	record.settled, record.disturbed = nil, record.running > 0
	m.ByUID[owner] = record
	return forgot
}
