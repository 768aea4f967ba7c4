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
	"github.com/opblocks/opblocks/internal/record"
)

// formerError is returned for an object with the mark of an owner that is probably gone: a former owner, or any owner
// of the same kind if [Adopt] allows to adopt the object.
type formerError struct {
	*WaitingError
	mark  record.Mark
	adopt bool
}

func (e formerError) Unwrap() error { return e.WaitingError }

// mayWriteMarked is mayWrite for an object without a controller that has a mark.
func (o *owner) mayWriteMarked(d *desired, live client.Object, m record.Mark) error {
	name, ofOurName := d.kind.describe(live), m.Owner == o.objectName()
	ours := ofOurName && m.UID == o.reference.UID || m.UID == d.former
	switch {
	case ours && live.GetDeletionTimestamp() != nil:
		return &WaitingError{reason: reasonTerminating, message: name + " is being deleted"}
	case ours:
		return nil
	case m.Owner.Kind == o.objectName().Kind && d.options.adopt, ofOurName && m.Retained && d.options.adoptRetained && isWrittenBy(live, o.set, o.formerSets):
		return formerError{mark: m, adopt: true, WaitingError: &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
			"%s is adopted when it is certain that its former %s is gone", name, m.Owner.Kind.Kind)}}
	case ofOurName && !m.Retained:
		return formerError{mark: m, WaitingError: &WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
			"%s belongs to a deleted %s of the same name and is being deleted", name, m.Owner.Kind.Kind)}}
	}
	return o.markedByAnother(d.kind, live, m)
}

func (o *owner) markedByAnother(k *kind, live client.Object, m record.Mark) *OwnershipError {
	return &OwnershipError{
		Kind: k.gvk.Kind, Name: client.ObjectKeyFromObject(live), OwnerNamespace: m.Owner.Namespace,
		Owner:    &metav1.OwnerReference{Kind: m.Owner.Kind.Kind, Name: m.Owner.Name, UID: m.UID},
		Retained: m.Retained && m.Owner == o.objectName(),
	}
}

// isGone reports whether the owner that a mark names is gone: the API server has no object of its name, or one with
// another UID.
func (a *applier) isGone(ctx context.Context, o *owner, m record.Mark) (bool, error) {
	if gone, known := o.gone[m.UID]; known {
		return gone, nil
	}
	live, err := a.readNamed(ctx, o, m.Owner.NamespacedName)
	if err != nil {
		return false, err
	}
	if o.gone == nil {
		o.gone = map[types.UID]bool{}
	}
	o.gone[m.UID] = live == nil || live.GetUID() != m.UID
	return o.gone[m.UID], nil
}

// confirmAlive makes sure that the owner is as the API server has it, before a mark is set, changed or removed. The
// garbage collector would not repair a mistake: an object with the mark of an owner that is gone would stay, and an
// object that should stay would be deleted if it got a reference to that owner. A conflict error means that the owner
// has changed, is being deleted or is gone.
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

// confirmDeleted makes sure that the owner is being deleted or gone, before an object with its mark is deleted.
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
	before, marked := record.MarkOf(obj, k.gvk.GroupKind())
	live, err := a.readMetadata(ctx, o, k, client.ObjectKeyFromObject(obj))
	switch {
	case err != nil:
		return false, err
	case live == nil || live.GetUID() != obj.GetUID():
		return true, nil // gone: the cache does not show it yet
	case live.GetDeletionTimestamp() != nil:
		return true, nil
	}
	now, still := record.MarkOf(live, k.gvk.GroupKind())
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
	err = deleteExactly(ctx, o.client, target, metav1.DeletePropagationBackground)
	if client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("delete %s: %w", k.describe(obj), err)
	}
	if err == nil {
		a.countByName(o, k, obj, deletion, sum{})
		a.report(ctx, o, k, obj, outcomeDeleted, "")
	}
	return true, nil
}

// isManagedBy reports whether a field manager has written an object. It also returns true if the managed fields were
// cleared, since nobody knows then: the API server clears the managed fields of a very large object. A copy always has
// some.
func isManagedBy(obj client.Object, manager client.FieldOwner) bool {
	entries := obj.GetManagedFields()
	for _, entry := range entries {
		if entry.Manager == string(manager) && entry.Subresource == "" {
			return true
		}
	}
	return len(entries) == 0
}

// readMetadata reads an object's metadata past the cache. It returns nil if the object does not exist.
func (a *applier) readMetadata(ctx context.Context, o *owner, k *kind, name client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(k.gvk)
	switch err := a.liveReader(o).Get(ctx, name, live); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // or its kind is not served any more
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", k.gvk.Kind, name, err)
	}
	return live, nil
}
