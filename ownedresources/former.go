package ownedresources

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/opblocks/opblocks/internal/passcontext"
)

// formerError is returned for an object with the mark of an owner that is probably gone: one that had the owner's name,
// or any one of the owner's kind if the object may be adopted with [Adopt].
type formerError struct {
	*WaitingError
	mark  mark
	adopt bool
}

func (e formerError) Unwrap() error { return e.WaitingError }

// mayWriteMarked is mayWrite for an object without a controller that has a mark.
func (o *owner) mayWriteMarked(d *desired, live client.Object, m mark) error {
	name, ofOurName := d.kind.describe(live), m.owner == o.objectName()
	ours := ofOurName && m.uid == o.reference.UID || m.uid == d.former
	switch {
	case ours && live.GetDeletionTimestamp() != nil:
		return &WaitingError{reason: reasonTerminating, message: name + " is being deleted"}
	case ours:
		return nil
	case m.owner.kind == o.objectName().kind && d.options.adopt, ofOurName && m.retained && d.options.adoptRetained && isWrittenBy(live, o.set, o.formerSets):
		return formerError{mark: m, adopt: true, WaitingError: &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
			"%s is adopted when it is certain that its former %s is gone", name, m.owner.kind.Kind)}}
	case ofOurName && !m.retained:
		return formerError{mark: m, WaitingError: &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
			"%s belongs to a deleted %s of the same name and is being deleted", name, m.owner.kind.Kind)}}
	}
	return o.markedByAnother(d.kind, live, m)
}

func (o *owner) markedByAnother(k *kind, live client.Object, m mark) *OwnershipError {
	return &OwnershipError{
		Kind: k.gvk.Kind, Name: client.ObjectKeyFromObject(live), OwnerNamespace: m.owner.name.Namespace,
		Owner:    &metav1.OwnerReference{Kind: m.owner.kind.Kind, Name: m.owner.name.Name, UID: m.uid},
		Retained: m.retained && m.owner == o.objectName(),
	}
}

// claim returns nil if the live object may be written. It deletes what is left of a former owner of the same name, and
// finds out whether an object that may be adopted has lost its owner.
func (a *applier) claim(ctx context.Context, d *desired, live client.Object) error {
	err := d.owner.mayWrite(d, live)
	if orphan, ok := errors.AsType[orphanError](err); ok {
		return a.deleteOrphan(ctx, d, live, orphan)
	}
	former, ok := errors.AsType[formerError](err)
	if !ok {
		return err
	}
	gone, err := a.isGone(ctx, d.owner, former.mark)
	switch {
	case err != nil:
		return err
	case !gone && former.mark.owner == d.owner.objectName(): // the cache is behind, and shows our owner as it was before its namesake
		return apierrors.NewConflict(schema.GroupResource{Resource: d.owner.reference.Kind}, d.owner.reference.Name,
			errors.New("it was deleted and created anew, and the cache does not show that yet"))
	case !gone:
		return d.owner.markedByAnother(d.kind, live, former.mark)
	case former.adopt:
		d.former = former.mark.uid
		return d.owner.mayWrite(d, live)
	}
	if _, err := a.removeMarked(ctx, d.owner, d.kind, live); err != nil {
		return err
	}
	return former.WaitingError
}

// isGone reports whether the owner that a mark names is gone: the API server has no object of its name, or one with
// another UID.
func (a *applier) isGone(ctx context.Context, o *owner, m mark) (bool, error) {
	if gone, known := o.gone[m.uid]; known {
		return gone, nil
	}
	live, err := a.readNamed(ctx, o, m.owner.name)
	if err != nil {
		return false, err
	}
	if o.gone == nil {
		o.gone = map[types.UID]bool{}
	}
	o.gone[m.uid] = live == nil || live.GetUID() != m.uid
	return o.gone[m.uid], nil
}

// confirmAlive makes sure that the owner is as the API server has it, before an object is created or bound to it in a way
// that the garbage collector does not undo: one that is created for an owner that is gone would stay, and one that is to
// stay would be deleted with a reference to it. A conflict error means that the owner has changed, is being deleted or
// gone.
func (a *applier) confirmAlive(ctx context.Context, o *owner) error {
	if err := a.confirm(ctx, o); err != nil || o.confirmed {
		return err
	}
	if pass := passcontext.FromContext(ctx); pass != nil {
		if known, err := pass.ConfirmCurrent(ctx, o.object); known {
			return err
		}
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: o.reference.Kind}, o.reference.Name, errors.New("it was deleted"))
}

// confirmDeleted makes sure that the owner is being deleted or gone, before what it has anywhere is deleted.
func (a *applier) confirmDeleted(ctx context.Context, o *owner) error {
	if o.confirmed {
		return nil
	}
	live, err := a.readOwner(ctx, o)
	if err != nil {
		return err
	}
	if live != nil && live.GetUID() == o.reference.UID && live.GetDeletionTimestamp() == nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.reference.Kind}, o.reference.Name, errors.New("it is not being deleted"))
	}
	o.confirmed = true
	return nil
}

// removeMarked deletes an object that has no owner reference, after its owner was found not to need it. It reads the
// object from the API server: the cache may be configured to drop managed fields. It returns false, and deletes nothing,
// if the object is not ours: its mark is gone, or our field manager has never written it.
func (a *applier) removeMarked(ctx context.Context, o *owner, k *kind, obj client.Object) (ours bool, err error) {
	before, marked := markOf(obj, k.gvk.GroupKind())
	live, err := a.readMetadata(ctx, o, k, client.ObjectKeyFromObject(obj))
	switch {
	case err != nil:
		return false, err
	case live == nil || live.GetUID() != obj.GetUID():
		return true, nil // gone: the cache does not show it yet
	case live.GetDeletionTimestamp() != nil:
		return true, nil
	}
	now, still := markOf(live, k.gvk.GroupKind())
	switch {
	case !marked || !still || !isManagedBy(live, o.fieldManager):
		log.FromContext(ctx).Info("An object is not deleted, although it looks like one of ours: another field manager made it, or its mark is gone",
			"kind", k.gvk.Kind, "object", client.ObjectKeyFromObject(obj))
		return false, nil
	case now != before:
		return true, apierrors.NewConflict(schema.GroupResource{Group: k.gvk.Group, Resource: k.gvk.Kind}, obj.GetName(),
			errors.New("its mark has changed, and the cache does not show that yet"))
	}
	target := k.empty()
	target.SetNamespace(live.GetNamespace())
	target.SetName(live.GetName())
	target.SetUID(live.GetUID())
	target.SetResourceVersion(live.GetResourceVersion())
	err = deleteExactly(ctx, o.client, target)
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete %s: %w", k.describe(obj), err)
	}
	if err == nil {
		a.countByName(o, k, obj, deletion, sum{})
		a.record(ctx, o, k, obj, outcomeDeleted, "")
	}
	return true, nil
}

// isManagedBy reports whether a field manager has written an object. Nobody knows if the managed fields were cleared, as
// the API server does with those of a very large object. A copy always has some.
func isManagedBy(obj client.Object, manager client.FieldOwner) bool {
	entries := obj.GetManagedFields()
	for _, entry := range entries {
		if entry.Manager == string(manager) && entry.Subresource == "" {
			return true
		}
	}
	return len(entries) == 0
}

// readMetadata reads an object's metadata past the cache. It returns nil if there is no object.
func (a *applier) readMetadata(ctx context.Context, o *owner, k *kind, name client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	reader := client.Reader(o.client)
	if a.apiReader != nil {
		reader = a.apiReader
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(k.gvk)
	switch err := reader.Get(ctx, name, live); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // also of a kind that is not served any more
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", k.gvk.Kind, name, err)
	}
	return live, nil
}
