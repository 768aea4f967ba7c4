package ownedresources

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Retain keeps the child's objects when the owner is deleted, as long as the function returns true for the owner. They
// are not pruned either. T is the type of the owner.
//
// While the function returns true, the objects carry no owner reference, only [LabelOwnerUID] and annotations,
// [AnnotationRetained] among them. So no kind of deletion removes them, neither with background nor with foreground nor
// with orphan propagation, and not if the operator is down. When the function returns false, they get the owner
// reference, and are deleted with the owner. The reference is taken off and put on with the resource version as
// precondition.
//
// Set the field from which the function decides before you delete the owner, and wait until a reconcile has seen it:
// under foreground deletion the garbage collector deletes what has an owner reference at once. The owner has a finalizer
// (see [ChildSet.FinalizerName]): under background deletion it catches up with a change that came right before the
// deletion.
//
// An object that falls out of what is desired stays until the function returns false. If a set has several children of one kind,
// [AnnotationBuilder] shows which of them built the object. If a release adds, removes, renames or reorders the functions that build this
// kind, nobody knows that any more of an object that has fallen out before. It then stays until the functions of all children of its kind
// return false. Functions without a name have the position as a name: give the children of such a kind functions with names, or
// do not reorder them.
//
// The deletion of the namespace deletes them all the same.
//
// When the owner is deleted, an event with the reason Retained and a log entry name what stays. A new owner of the same
// name does not take it over: the error is an [*OwnershipError] whose Retained is true. With the option
// [AdoptRetained] it does, as soon as the API server shows that the former owner is gone.
func Retain[T client.Object](keep func(owner T) bool) ChildOption {
	return func(o *childOptions) {
		o.retain = func(owner client.Object) bool { return keep(owner.(T)) }
		o.retainType = reflect.TypeFor[T]()
	}
}

// unreference takes the owner reference off a live object, and sets the marks, in one patch. The resource version is a
// precondition. It returns the live object as it is then.
//
// An apply cannot do it: a reference that another field manager has written too would stay.
func (a *applier) unreference(ctx context.Context, o *owner, k *kind, live client.Object, b binding) (client.Object, error) {
	annotations := o.marksFor(objectName{k.gvk.GroupKind(), client.ObjectKeyFromObject(live)}, b)
	if last := lastAppliedOf(live); last.method != byOthers {
		last.method = byCreate // the fields of this patch have to be migrated before the next apply
		annotations[AnnotationApplied] = last.String()
	}
	references := withoutReferenceTo(live, o.reference.UID)
	if references == nil {
		references = []metav1.OwnerReference{}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(), "ownerReferences": references,
		"annotations": annotations, "labels": map[string]string{LabelOwnerUID: string(o.reference.UID)},
	}})
	if err != nil {
		return nil, err
	}
	answer := k.empty()
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	if err := o.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), o.fieldManager); err != nil {
		return nil, fmt.Errorf("take the owner reference off %s: %w", k.describe(live), lostRaceAsConflict(err))
	}
	a.writes.Record(answer)
	return answer, nil
}

// retains returns what the functions of [Retain] return, for the digest of what is desired.
func (r *reconciliation[T]) retains() (all []byte) {
	for _, child := range r.set.children {
		if child.options.retain != nil {
			all = append(all, byte(child.options.bindingFor(r.object)))
		}
	}
	return all
}

// retainsAll reports whether each child of a kind has the option Retain, with a function that returns true.
func (s *ChildSet[T]) retainsAll(k *kind, owner client.Object) bool {
	return s.hasOption(k.gvk, func(o *childOptions) bool { return o.retain != nil }) &&
		!s.hasOption(k.gvk, func(o *childOptions) bool { return o.bindingFor(owner) != byRetention })
}

// retainsNone reports whether there is a child of a kind with the option Retain, and the functions of all of them return
// false. Without such a child nobody knows any more whether a retained object is still needed, so it stays.
func (s *ChildSet[T]) retainsNone(k *kind, owner client.Object) bool {
	return s.hasOption(k.gvk, func(o *childOptions) bool { return o.retain != nil }) &&
		!s.hasOption(k.gvk, func(o *childOptions) bool { return o.bindingFor(owner) == byRetention })
}

// builders returns what tells the children with the option Retain apart from others of their kind in the set: a hash of the names of
// the functions that build the kind, and the position. If a release adds, removes or reorders such children, the hash changes, and
// a live object that carries the former one is attributed to no child. Only two functions without a name may change places unseen.
func (s *ChildSet[T]) builders(kinds []*kind) []string {
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
			hash := sumOf([]byte(strings.Join(functions, "\n")))
			builders[i] = fmt.Sprintf("%s/%d", hash[:8], position)
		}
	}
	return builders
}

// builderOf returns the child that built a live object, or nil if that is not known.
func (s *ChildSet[T]) builderOf(w written) *Child[T] {
	known, mark := s.kinds.Load(), w.object.GetAnnotations()[AnnotationBuilder]
	for i, builder := range known.builders {
		if builder != "" && builder == mark && known.kinds[i].gvk.GroupKind() == w.kind.gvk.GroupKind() {
			return s.children[i]
		}
	}
	return nil
}

// keeps reports whether a live object that is not desired stays: what the function of the child that built it returns. If that child
// is not known, a retained object stays unless the functions of all children of its kind return false, and another one
// stays only if they all return true.
func (s *ChildSet[T]) keeps(o *owner, w written) bool {
	if child := s.builderOf(w); child != nil {
		return child.options.bindingFor(o.object) == byRetention
	}
	if m, marked := markOf(w.object, w.kind.gvk.GroupKind()); marked {
		return m.retained && !s.retainsNone(w.kind, o.object)
	}
	return s.retainsAll(w.kind, o.object)
}

// withoutRetained returns those of the objects that may be pruned. It takes the owner reference off an object that is to
// be retained.
func (s *ChildSet[T]) withoutRetained(ctx context.Context, o *owner, undesired []written) (rest []written, err error) {
	for _, w := range undesired {
		if !s.keeps(o, w) {
			rest = append(rest, w)
			continue
		}
		if m, marked := markOf(w.object, w.kind.gvk.GroupKind()); marked && m.retained || w.object.GetDeletionTimestamp() != nil {
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
	decided map[objectName]bool // of the objects that are desired: whether they stay
	unknown map[*kind]bool      // the kinds of which a retained child could not be built
}

// retentionOf builds the children that may stay, to find out which objects they are.
func (s *ChildSet[T]) retentionOf(r *reconciliation[T]) *retention {
	known := &retention{decided: map[objectName]bool{}, unknown: map[*kind]bool{}}
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
func (s *ChildSet[T]) stays(known *retention, o *owner, w written) bool {
	name := objectName{w.kind.gvk.GroupKind(), client.ObjectKeyFromObject(w.object)}
	if stays, decided := known.decided[name]; decided {
		return stays
	}
	m, marked := markOf(w.object, name.kind)
	if marked && m.retained || s.builderOf(w) != nil {
		return s.keeps(o, w)
	}
	for k := range known.unknown {
		if k.gvk.GroupKind() == name.kind {
			return true
		}
	}
	return false
}

// retainAtDeletion takes the owner references off the objects that are to stay, in case that no reconcile has done it
// since the function of [Retain] began to return true. It returns what the owner has besides these, and the objects that
// stay.
func (s *ChildSet[T]) retainAtDeletion(r *reconciliation[T], known *retention, found []written) (rest, stay []written, err error) {
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

func containsName(all []written, name objectName) bool {
	for _, w := range all {
		if w.kind.gvk.GroupKind() == name.kind && client.ObjectKeyFromObject(w.object) == name.name {
			return true
		}
	}
	return false
}

// readWritten reads an object of this name past the cache. It returns nil if the set has not written it for the owner.
func (s *ChildSet[T]) readWritten(r *reconciliation[T], name objectName) (*written, error) {
	for _, k := range r.kinds {
		if k.gvk.GroupKind() != name.kind {
			continue
		}
		live, err := s.applier.readMetadata(r.ctx, r.owner, k, name.name)
		if err != nil || live == nil || live.DeletionTimestamp != nil || !s.isWritten(r.owner, k, live) {
			return nil, err
		}
		return &written{kind: k, object: live}, nil
	}
	return nil, nil
}

// unmark takes the marks off a live object, which then belongs to nobody. The resource version is a precondition.
func (a *applier) unmark(ctx context.Context, o *owner, w written) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": w.object.GetUID(), "resourceVersion": w.object.GetResourceVersion(), "labels": map[string]any{LabelOwnerUID: nil},
		"annotations": map[string]any{AnnotationOwner: nil, AnnotationObject: nil, AnnotationRetained: nil, AnnotationBuilder: nil},
	}})
	if err != nil {
		return err
	}
	answer := w.kind.empty()
	answer.SetNamespace(w.object.GetNamespace())
	answer.SetName(w.object.GetName())
	err = o.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch), o.fieldManager)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take the marks off %s: %w", w.kind.describe(w.object), lostRaceAsConflict(err))
	}
	return nil
}

// report says what stays when the owner is deleted, by an event on the owner and in the log.
func (s *ChildSet[T]) report(ctx context.Context, o *owner, stay []written) {
	for _, w := range stay {
		s.applier.record(ctx, o, w.kind, w.object, outcomeRetained, "")
	}
}
