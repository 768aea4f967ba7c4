package set

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/owned"
	"github.com/opblocks/opblocks/internal/owned/apply"
	"github.com/opblocks/opblocks/internal/owned/childindex"
	"github.com/opblocks/opblocks/internal/owned/memory"
	"github.com/opblocks/opblocks/internal/owned/report"
	"github.com/opblocks/opblocks/internal/owned/write"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// prune deletes the children that the set wrote for the owner and that are not desired any more. In a reconcile by package reconcile, the
// deletion is left to the end, after all steps, and is done only if each step succeeded or waits. If there is nothing to prune, prune sends
// no request and returns true.
func (s *Set) prune(ctx context.Context, o *owned.Owner, desired DesiredNames) (nothingToPrune bool, err error) {
	if !s.mayPrune(o, desired) && len(UndesiredRuns(o, desired)) == 0 {
		return true, nil
	}
	now := func(ctx context.Context) error { return s.pruneNow(ctx, o, desired) }
	if pass := passcontext.FromContext(ctx); pass != nil {
		pass.AfterSteps(now)
		return false, nil
	}
	return false, now(ctx)
}

// mayPrune reports whether there may be children that are not desired. Without a manager the set has no index of children. Then mayPrune
// reports true until the children were listed and pruned once for the same desired names.
func (s *Set) mayPrune(o *owned.Owner, desired DesiredNames) bool {
	if s.Cache == nil {
		return !s.Owners.isPruned(o.Reference.UID, s.Owners.digest(desired))
	}
	if len(s.childIndex.FormerOwners(o.ObjectName(), o.Reference.UID)) > 0 {
		return true
	}
	children := s.childIndex.ChildrenOf(o.Reference.UID)
	if len(children) == 0 {
		return false
	}
	undesired := desired.undesired()
	return slices.ContainsFunc(children, func(child childindex.Name) bool {
		return undesired(record.Name{Kind: s.Known().kinds[child.Kind].GVK.GroupKind(), NamespacedName: child.NamespacedName})
	})
}

func (s *Set) pruneNow(ctx context.Context, o *owned.Owner, desired DesiredNames) error {
	found, unserved, err := s.listWritten(ctx, o)
	if err != nil {
		return err
	}
	undesired, err := s.withoutRetained(ctx, o, desired.without(found))
	if err != nil {
		return err
	}
	if _, err := s.deleteInOrder(ctx, o, undesired, "no longer desired"); err != nil {
		return err
	}
	if err := s.forgetRuns(ctx, o, desired, found); err != nil {
		return err
	}
	left, err := s.listFormer(ctx, o)
	if err != nil {
		return err
	}
	if _, err := s.deleteInOrder(ctx, o, desired.without(left), "left by a former "+o.String()); err != nil {
		return err
	}
	if s.Cache == nil && !unserved {
		s.Owners.setPruned(o.Reference.UID, s.Owners.digest(desired))
	}
	return nil
}

// deleteInOrder deletes the objects with the highest rank (the annotation opblocks.dev/order), and returns the objects that are not gone
// yet. If objects with a lower rank have to wait until these are gone, the error is a [*owned.WaitingError]. If an object turns out not to
// be ours, deleteInOrder neither deletes it nor waits for it. why is a part of the error messages.
func (s *Set) deleteInOrder(ctx context.Context, o *owned.Owner, found []written, why string) (remaining []written, err error) {
	defer s.Applier.EmitEvents(o)
	for len(found) > 0 {
		highest := 0
		for _, w := range found {
			highest = max(highest, w.order)
		}
		var deleting []string
		var later, ours []written
		var waits []*owned.WaitingError
		for _, w := range found {
			if w.order < highest {
				later = append(later, w)
				continue
			}
			isOurs, err := s.delete(ctx, o, w)
			if wait, ok := errors.AsType[*owned.WaitingError](err); ok {
				waits = append(waits, wait)
				continue
			}
			if err != nil {
				return found, fmt.Errorf("%s, %s: %w", w.kind.Describe(w.object), why, err)
			}
			if isOurs {
				ours, deleting = append(ours, w), append(deleting, w.kind.Describe(w.object))
			}
		}
		if len(waits) > 0 {
			return found, owned.JoinWaits(waits)
		}
		if len(deleting) > 0 && len(later) > 0 {
			return found, owned.NewWaiting(owned.ReasonTerminating, 0, fmt.Sprintf(
				"%s: %s; waits for the deletion of %s, which came after", why, enumerate(describeAll(later)), enumerate(deleting)))
		}
		if found = later; len(deleting) > 0 {
			return ours, nil
		}
	}
	return nil, nil
}

// delete deletes an object that the set wrote. If the object turns out not to be ours, delete returns false.
func (s *Set) delete(ctx context.Context, o *owned.Owner, w written) (ours bool, err error) {
	holdsRun := slices.Contains(w.object.GetFinalizers(), record.RunOnce)
	if w.object.GetDeletionTimestamp() != nil && !holdsRun {
		return true, nil
	}
	a := s.Applier
	if o.Object.GetDeletionTimestamp() == nil {
		if err := a.SlowDownByName(o, w.kind, w.object, memory.Deletion, owned.Sum{}); err != nil {
			return true, err
		}
	}
	m, marked := record.MarkOf(w.object, w.kind.GVK.GroupKind())
	switch marked = marked && metav1.GetControllerOfNoCopy(w.object) == nil; {
	case marked && m.UID != o.Reference.UID:
		if gone, err := o.IsGone(ctx, m); err != nil || !gone {
			return false, err
		}
	case marked && o.Object.GetDeletionTimestamp() != nil:
		if err := o.ConfirmDeleted(ctx); err != nil {
			return true, err
		}
	default:
		if err := o.Confirm(ctx); err != nil {
			return true, err
		}
	}
	if marked {
		return a.RemoveMarked(ctx, o, w.kind, w.object)
	}
	if holdsRun {
		released, err := apply.RemoveRunFinalizer(ctx, a.Writes, o, w.kind, w.object)
		if err != nil || released == nil || released.GetDeletionTimestamp() != nil {
			return true, err
		}
		w.object = released
	}
	err = write.DeleteExactly(ctx, o.Client, w.object, metav1.DeletePropagationBackground)
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete: %w", err)
	}
	if err == nil {
		a.CountByName(o, w.kind, w.object, memory.Deletion, owned.Sum{})
		a.Report(ctx, o, w.kind, w.object, report.OutcomeDeleted, "")
	}
	return true, nil
}
