package ownedresources

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// A child is a pure function of its owner and of its inputs. So while the owner, the inputs and the live children are those
// of a reconcile that found nothing to do, there is nothing to build and nothing to compare.

// settledOwner is what a set found when it had nothing to do for an owner.
type settledOwner struct {
	version  string // of the owner
	pruned   uint64 // see ownerRecord: it changes when the children have to be listed again
	epoch    uint64 // see versions
	children []settledChild
	inputs   []settledInput
	served   []servedState // of the children, with the option IfServed
}

// settledChild is a live child that was as desired and ready.
type settledChild struct {
	kind    *kind
	name    types.NamespacedName
	uid     types.UID
	version string
}

// settledInput is the value that an input had.
type settledInput struct {
	input any
	value any
}

// Settled reports whether Reconcile would find everything as the last call of it left it: unchanged and ready. It reports
// false unless it is certain. It sends no request, unless an input does or a child is read past the cache, and does not change
// obj, which may be the cache's own.
//
// It is certain if the last call was made in a pass of package reconcile, returned nil and changed nothing, if obj and each child
// have the versions that they had then, as the cache shows them, if each input has the same value, if the same kinds are served,
// and if no event of obj or of a child came since. Package reconcile calls it, and then leaves the step out.
func (s *ChildSet[T]) Settled(ctx context.Context, c client.Client, obj T) bool {
	last := s.applier.owners.settledOf(obj.GetUID())
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
		if !s.applier.isSettled(ctx, c, &last.children[i]) {
			return false
		}
	}
	if len(last.inputs) > 0 && !s.inputsSettled(ctx, c, obj, last.inputs) {
		return false
	}
	if report := passcontext.PurityCheck(ctx); report != nil {
		if err := s.checkPurity(ctx, c, obj, last); err != nil {
			report(err)
		}
	}
	return true
}

// canSettle reports whether what a reconcile finds is a function of the owner, the inputs, the live children and the kinds that
// are served alone. With [Anywhere] and [Retain] it also depends on objects of former owners, which have no controller whose
// events could be noted, and with [RunOnce] on a Job that is gone. Sets with such children are never left out. With
// [ExpandVolumes] there is nothing to do for claims while the owner has no annotation about them, so its version suffices.
func (s *ChildSet[T]) canSettle() bool {
	return !slices.ContainsFunc(s.children, func(c *Child[T]) bool {
		return c.options.anywhere || c.options.retain != nil || c.options.runOnce
	})
}

// IsStep reports whether step is this set. A type that embeds the set has its method Settled too, but its Reconcile may do more.
func (s *ChildSet[T]) IsStep(step any) bool { return step == any(s) }

// isSettled reports whether the cache shows a child in the version in which it was as desired. A write of ours that the cache
// does not show yet makes it another version.
func (a *applier) isSettled(ctx context.Context, c client.Client, child *settledChild) bool {
	live := child.kind.receivers.Get().(client.Object)
	defer child.kind.release(live)
	return c.Get(ctx, child.name, live, withoutCopy) == nil &&
		live.GetResourceVersion() == child.version && live.GetUID() == child.uid && a.writes.Newer(live) == live
}

func (s *ChildSet[T]) inputsSettled(ctx context.Context, c client.Client, obj T, inputs []settledInput) bool {
	o, err := newOwner(obj, c)
	if err != nil {
		return false
	}
	r := &reconciliation[T]{set: s, ctx: ctx, client: c, owner: &o, object: s.withoutRecords(obj)}
	return !slices.ContainsFunc(inputs, func(last settledInput) bool {
		value, err := last.input.(anyInput[T]).readAny(r)
		return err != nil || !reflect.DeepEqual(value, last.value)
	})
}

// settled returns what to remember of a reconcile that found nothing to do. It returns nil if there may be something to do.
func (r *reconciliation[T]) settled() *settledOwner {
	version := r.object.GetResourceVersion()
	if !r.quiet || r.owner.reference.UID == "" || version == "" { // controller-runtime's fake client sets no UID
		return nil
	}
	if pass := passcontext.FromContext(r.ctx); pass == nil || !pass.AsCached(r.owner.object) {
		return nil
	}
	now := &settledOwner{version: version, children: make([]settledChild, len(r.objects))}
	for i := range r.objects {
		d := &r.objects[i]
		if d.live == nil {
			return nil
		}
		now.children[i] = settledChild{d.kind, client.ObjectKeyFromObject(d.object), d.live.GetUID(), d.live.GetResourceVersion()}
	}
	if r.set.ifServed {
		for i := range r.states {
			now.served = append(now.served, r.states[i].served)
		}
	}
	for in, result := range r.inputs {
		now.inputs = append(now.inputs, settledInput{in, result.value})
	}
	return now
}

// release returns a receiver to the pool, without what the cache has put into it. A receiver without its content has no kind if
// it is unstructured, so such receivers are not used again.
func (k *kind) release(receiver client.Object) {
	if _, untyped := receiver.(*unstructured.Unstructured); untyped {
		return
	}
	reflect.ValueOf(receiver).Elem().SetZero()
	k.receivers.Put(receiver)
}

func (m *ownerMemory) settledOf(owner types.UID) *settledOwner {
	m.mu.Lock()
	defer m.mu.Unlock()
	record := m.byUID[owner]
	if record.settled == nil || record.settled.pruned != record.pruned || record.settled.epoch != m.versions.current() {
		return nil
	}
	return record.settled
}

// begin notes that a reconcile of the owner begins: events are noted from now on. A set of two reconcilers may have two of
// them at once. It returns the epoch of the versions that the reconcile is going to see.
func (m *ownerMemory) begin(owner types.UID) (epoch uint64) {
	m.change(owner, func(r *ownerRecord) {
		r.disturbed = r.disturbed && r.running > 0
		r.running++
	})
	return m.versions.current()
}

// end notes what a reconcile has found: nil if there may be something to do. It is not remembered if an event came meanwhile.
func (m *ownerMemory) end(owner types.UID, epoch uint64, found *settledOwner) {
	m.change(owner, func(r *ownerRecord) {
		r.running = max(0, r.running-1) // the owner may have been forgotten meanwhile
		if r.settled = found; r.disturbed || r.pruned == 0 {
			r.settled = nil
		}
		if r.settled != nil {
			r.settled.pruned, r.settled.epoch = r.pruned, epoch
		}
	})
}

// observe forgets that there was nothing to do for an owner: an event of it, or of an object that it controls, has come. It
// reports whether that was remembered.
func (m *ownerMemory) observe(owner types.UID) (forgot bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, found := m.byUID[owner]
	if !found { // perhaps it is no owner of ours
		return false
	}
	forgot = record.settled != nil
	record.settled, record.disturbed = nil, record.running > 0
	m.byUID[owner] = record
	return forgot
}
