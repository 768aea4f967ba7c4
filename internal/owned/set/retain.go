package set

import (
	"context"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/record"
)

// retains returns, for each function of [ownedresources.Child.Retain], a byte that tells its result. It is a part of the hash of what is
// desired.
func (r *Reconciliation) retains() (all []byte) {
	for _, child := range r.Set.Children {
		if child.Options.Retain != nil {
			all = append(all, byte(child.Options.BindingFor(r.Object)))
		}
	}
	return all
}

// withoutRetained returns the objects that may be pruned. From an object that has to stay (option Retain), it removes the owner reference.
func (s *Set) withoutRetained(ctx context.Context, o *owned.Owner, undesired []written) (rest []written, err error) {
	for _, w := range undesired {
		if !s.Known().keeps(o, w) {
			rest = append(rest, w)
			continue
		}
		if m, marked := record.MarkOf(w.object, w.kind.GVK.GroupKind()); marked && m.Retained || w.object.GetDeletionTimestamp() != nil {
			continue
		}
		if _, err := s.Applier.Unreference(ctx, o, w.kind, w.object, owned.ByRetention); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// retention says which objects stay when the owner is deleted (option Retain).
type retention struct {
	decided map[record.Name]bool // by the name of a desired object: whether it stays
	unknown map[*owned.Kind]bool // the kinds that have a child whose objects stay and that could not be built
}

// retentionOf builds the children with the option Retain, to find out which of their objects stay when the owner is deleted.
func (s *Set) retentionOf(r *Reconciliation) *retention {
	known := &retention{decided: map[record.Name]bool{}, unknown: map[*owned.Kind]bool{}}
	for i, child := range s.Children {
		if child.Options.Retain == nil {
			continue
		}
		b := child.Options.BindingFor(r.Object)
		if child.liveInput() == nil { // a child with a live input could be built only after other children were applied
			r.build(i)
		}
		if state := &r.States[i]; state.built {
			for j := state.from; j < state.to; j++ {
				if d := &r.objects[j]; d.Err == nil {
					known.decided[d.ObjectName()] = b == owned.ByRetention
				}
			}
		} else if b == owned.ByRetention {
			known.unknown[r.Kinds[i]] = true
		}
	}
	return known
}

// stays reports whether an object that the set wrote stays when the owner is deleted (option Retain).
func (s *Set) stays(known *retention, o *owned.Owner, w written) bool {
	name := record.NameOf(w.kind.GVK.GroupKind(), w.object)
	if stays, decided := known.decided[name]; decided {
		return stays
	}
	m, marked := record.MarkOf(w.object, name.Kind)
	if marked && m.Retained || s.Known().builderOf(w) != nil {
		return s.Known().keeps(o, w)
	}
	for k := range known.unknown {
		if k.GVK.GroupKind() == name.Kind {
			return true
		}
	}
	return false
}

// retainAtDeletion removes the owner references from the objects that are to stay. This is needed if the function of
// [ownedresources.Child.Retain] began to return true only after the last reconcile. It returns the other objects, and the objects that
// stay.
func (s *Set) retainAtDeletion(r *Reconciliation, known *retention, found []written) (rest, stay []written, err error) {
	for _, w := range found {
		if !s.stays(known, r.owner, w) {
			rest = append(rest, w)
		} else if w.object.GetDeletionTimestamp() == nil {
			stay = append(stay, w)
		}
	}
	for name, stays := range known.decided { // the cache may not show an object that was created just before
		if stays && !containsName(stay, name) {
			if w, err := s.readWritten(r, name); err != nil {
				return nil, nil, err
			} else if w != nil {
				stay = append(stay, *w)
			}
		}
	}
	for i, w := range stay {
		if !owned.RefersTo(w.object, r.owner.Reference.UID) {
			continue
		}
		if stay[i].object, err = s.Applier.Unreference(r.ctx, r.owner, w.kind, w.object, owned.ByRetention); err != nil {
			return nil, nil, err
		}
	}
	return rest, stay, nil
}

// readWritten reads an object of this name from the API server. If the set has not written the object for the owner, it returns nil.
func (s *Set) readWritten(r *Reconciliation, name record.Name) (*written, error) {
	for _, k := range r.Kinds {
		if k.GVK.GroupKind() != name.Kind {
			continue
		}
		live, err := r.owner.ReadMetadata(r.ctx, k, name.NamespacedName)
		if err != nil || live == nil || live.DeletionTimestamp != nil || !s.isWritten(r.owner, k, live) {
			return nil, err
		}
		return &written{kind: k, object: live}, nil
	}
	return nil, nil
}

// reportRetained reports the objects that stay when the owner is deleted, by an event on the owner and in the log.
func (s *Set) reportRetained(ctx context.Context, o *owned.Owner, stay []written) {
	for _, w := range stay {
		s.Applier.Report(ctx, o, w.kind, w.object, report.OutcomeRetained, "")
	}
}
