package ownedresources

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// Retain keeps the child's objects when the owner is deleted, as long as the function returns true for the owner. They
// are not pruned either. It returns the child.
//
// While the function returns true, the objects have no owner reference. They have a mark instead: the label
// opblocks.dev/owner-uid and annotations, among them opblocks.dev/retained. So no kind of deletion removes them,
// neither with background nor with foreground nor with orphan propagation, and not if the operator is down. When the
// function returns false, they get the owner reference, and are deleted with the owner. The reference is taken off and
// put on with the resource version as precondition.
//
// Set the field from which the function decides before you delete the owner, and wait until a reconcile has seen it:
// under foreground deletion the garbage collector deletes what has an owner reference at once. Under background
// deletion, [ChildSet.Finalize] still follows a change that came right before the deletion: the owner has a finalizer
// (see [ChildSet.FinalizerName]).
//
// An object that falls out of what is desired stays until the function returns false. If a set has several children of
// one kind, opblocks.dev/builder shows which function built the object. If a release adds, removes, renames or reorders
// the functions that build this kind, nobody knows any more which function built an object that has fallen out before.
// Such an object stays until the functions of all children of its kind return false. Functions without a name are told
// apart by their position: give the children of such a kind functions with names, or do not reorder them.
//
// The deletion of the namespace deletes them all the same.
//
// When the owner is deleted, an event with the reason Retained and a log entry name what stays. A new owner of the same
// name does not take it over: the error is an [*OwnershipError] whose Retained is true. With the option
// [AdoptRetained] it does, as soon as the API server shows that the former owner is gone.
func (c *Child[T, C]) Retain(keep func(owner T) bool) *Child[T, C] {
	return c.change("Retain", func(c *child) { c.options.retain = func(owner client.Object) bool { return keep(owner.(T)) } })
}

// unreference takes the owner reference off a live object, and sets the mark, in one patch. The resource version is a
// precondition. It returns the updated live object.
//
// An apply cannot do it: a reference that another field manager has written too would stay.
func (a *applier) unreference(ctx context.Context, o *owner, k *kind, live client.Object, b binding) (client.Object, error) {
	annotations := o.markFor(b).Annotations(record.NameOf(k.gvk.GroupKind(), live))
	if last := record.LastAppliedOf(live); last.Method != record.ByOthers {
		last.Method = record.ByCreate // the fields of this patch have to be migrated before the next apply
		annotations[record.Applied] = last.String()
	}
	references := withoutReferenceTo(live, o.reference.UID)
	if references == nil {
		references = []metav1.OwnerReference{}
	}
	answer := k.empty()
	if err := a.patchLocked(ctx, o, live, answer, map[string]any{
		"ownerReferences": references, "annotations": annotations, "labels": map[string]string{record.OwnerUID: string(o.reference.UID)},
	}, nil); err != nil {
		return nil, fmt.Errorf("take the owner reference off %s: %w", k.describe(live), err)
	}
	a.writes.Record(answer)
	return answer, nil
}

// retains returns what the functions of [Child.Retain] return, for the digest of what is desired.
func (r *reconciliation) retains() (all []byte) {
	for _, child := range r.set.children {
		if child.options.retain != nil {
			all = append(all, byte(child.options.bindingFor(r.object)))
		}
	}
	return all
}

// retainsAll reports whether each child of a kind has the option Retain, with a function that returns true.
func (s *set) retainsAll(k *kind, owner client.Object) bool {
	return s.hasOption(k.gvk, func(o *childOptions) bool { return o.retain != nil }) &&
		!s.hasOption(k.gvk, func(o *childOptions) bool { return o.bindingFor(owner) != byRetention })
}

// retainsNone reports whether there is a child of a kind with the option Retain, and the functions of all of them return
// false. Without such a child nobody knows any more whether a retained object is still needed, so it stays.
func (s *set) retainsNone(k *kind, owner client.Object) bool {
	return s.hasOption(k.gvk, func(o *childOptions) bool { return o.retain != nil }) &&
		!s.hasOption(k.gvk, func(o *childOptions) bool { return o.bindingFor(owner) == byRetention })
}

// builders returns what tells the children with the option Retain apart from others of their kind in the set: a hash of
// the names of the functions that build the kind, and the position. If a release adds, removes or reorders such
// children, the hash changes, and a live object with the earlier hash is attributed to no child. Only two functions
// without a name may change places unseen.
func (s *set) builders(kinds []*kind) []string {
	builders := make([]string, len(kinds))
	for i, child := range s.children {
		if child.options.retain == nil {
			continue
		}
		var functions []string
		position := 0
		for j, k := range kinds {
			if k.gvk.GroupKind() != kinds[i].gvk.GroupKind() {
				continue
			}
			if functions = append(functions, s.children[j].function); j == i {
				position = len(functions)
			}
		}
		if len(functions) > 1 {
			builders[i] = record.BuilderOf(functions, position)
		}
	}
	return builders
}

// builderOf returns the child that built a live object, or nil if that is not known.
func (s *set) builderOf(w written) *child {
	known, wrote := s.kinds.Load(), w.object.GetAnnotations()[record.Builder]
	for i, builder := range known.builders {
		if builder != "" && builder == wrote && known.kinds[i].gvk.GroupKind() == w.kind.gvk.GroupKind() {
			return s.children[i]
		}
	}
	return nil
}

// keeps reports whether a live object that is not desired stays. The function of the child that built it decides. If
// that child is not known, the functions of all children of its kind decide: a retained object stays unless all return
// false, and any other object stays only if all return true.
func (s *set) keeps(o *owner, w written) bool {
	if child := s.builderOf(w); child != nil {
		return child.options.bindingFor(o.object) == byRetention
	}
	if m, marked := record.MarkOf(w.object, w.kind.gvk.GroupKind()); marked {
		return m.Retained && !s.retainsNone(w.kind, o.object)
	}
	return s.retainsAll(w.kind, o.object)
}

// withoutRetained returns the objects that may be pruned. It takes the owner reference off an object that is to be
// retained.
func (s *set) withoutRetained(ctx context.Context, o *owner, undesired []written) (rest []written, err error) {
	for _, w := range undesired {
		if !s.keeps(o, w) {
			rest = append(rest, w)
			continue
		}
		if m, marked := record.MarkOf(w.object, w.kind.gvk.GroupKind()); marked && m.Retained || w.object.GetDeletionTimestamp() != nil {
			continue
		}
		if _, err := s.applier.unreference(ctx, o, w.kind, w.object, byRetention); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// retention is what is to stay when an owner is deleted.
type retention struct {
	decided map[record.Name]bool // whether an object that is desired stays
	unknown map[*kind]bool       // the kinds with a retained child that could not be built
}

// retentionOf builds the children that may stay, to find out which objects they are.
func (s *set) retentionOf(r *reconciliation) *retention {
	known := &retention{decided: map[record.Name]bool{}, unknown: map[*kind]bool{}}
	for i, child := range s.children {
		if child.options.retain == nil {
			continue
		}
		b := child.options.bindingFor(r.object)
		if child.liveInput() == nil { // with one, it could be built only after others were applied
			r.build(i)
		}
		if state := &r.states[i]; state.built {
			for j := state.from; j < state.to; j++ {
				if d := &r.objects[j]; d.err == nil {
					known.decided[d.objectName()] = b == byRetention
				}
			}
		} else if b == byRetention {
			known.unknown[r.kinds[i]] = true
		}
	}
	return known
}

// stays reports whether an object that the set wrote stays when the owner is deleted.
func (s *set) stays(known *retention, o *owner, w written) bool {
	name := record.NameOf(w.kind.gvk.GroupKind(), w.object)
	if stays, decided := known.decided[name]; decided {
		return stays
	}
	m, marked := record.MarkOf(w.object, name.Kind)
	if marked && m.Retained || s.builderOf(w) != nil {
		return s.keeps(o, w)
	}
	for k := range known.unknown {
		if k.gvk.GroupKind() == name.Kind {
			return true
		}
	}
	return false
}

// retainAtDeletion takes the owner references off the objects that are to stay, in case that no reconcile has done it
// since the function of [Child.Retain] began to return true. It returns the other objects, and the objects that stay.
func (s *set) retainAtDeletion(r *reconciliation, known *retention, found []written) (rest, stay []written, err error) {
	for _, w := range found {
		if !s.stays(known, r.owner, w) {
			rest = append(rest, w)
		} else if w.object.GetDeletionTimestamp() == nil {
			stay = append(stay, w)
		}
	}
	for name, stays := range known.decided { // the cache may not show an object that was created right before
		if stays && !containsName(stay, name) {
			if w, err := s.readWritten(r, name); err != nil {
				return nil, nil, err
			} else if w != nil {
				stay = append(stay, *w)
			}
		}
	}
	for i, w := range stay {
		if !refersTo(w.object, r.owner.reference.UID) {
			continue
		}
		if stay[i].object, err = s.applier.unreference(r.ctx, r.owner, w.kind, w.object, byRetention); err != nil {
			return nil, nil, err
		}
	}
	return rest, stay, nil
}

func containsName(all []written, name record.Name) bool {
	for _, w := range all {
		if w.kind.gvk.GroupKind() == name.Kind && client.ObjectKeyFromObject(w.object) == name.NamespacedName {
			return true
		}
	}
	return false
}

// readWritten reads an object of this name past the cache. It returns nil if the set has not written it for the owner.
func (s *set) readWritten(r *reconciliation, name record.Name) (*written, error) {
	for _, k := range r.kinds {
		if k.gvk.GroupKind() != name.Kind {
			continue
		}
		live, err := s.applier.readMetadata(r.ctx, r.owner, k, name.NamespacedName)
		if err != nil || live == nil || live.DeletionTimestamp != nil || !s.isWritten(r.owner, k, live) {
			return nil, err
		}
		return &written{kind: k, object: live}, nil
	}
	return nil, nil
}

// unmark takes the mark off a live object, which then belongs to nobody. The resource version is a precondition.
func (a *applier) unmark(ctx context.Context, o *owner, w written) error {
	err := a.patchLocked(ctx, o, w.object, w.kind.empty(), map[string]any{
		"labels":      map[string]any{record.OwnerUID: nil},
		"annotations": map[string]any{record.Owner: nil, record.Object: nil, record.Retained: nil, record.Builder: nil},
	}, nil)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take the marks off %s: %w", w.kind.describe(w.object), err)
	}
	return nil
}

// reportRetained says what stays when the owner is deleted, by an event on the owner and in the log.
func (s *set) reportRetained(ctx context.Context, o *owner, stay []written) {
	for _, w := range stay {
		s.applier.report(ctx, o, w.kind, w.object, outcomeRetained, "")
	}
}
