package owned

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

	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// FormerError is returned for an object without a controller whose mark (the annotations that name its owner) names a former owner. A
// former owner is probably gone, and has the kind, the namespace and the name of the present owner. With [ownedresources.Child.Adopt] its
// namespace and its name may also be others. If Adopt is true, an option allows the present owner to adopt the object as soon as it is
// certain that the former owner is gone. If Adopt is false, the object is deleted then.
type FormerError struct {
	*WaitingError
	Mark  record.Mark
	Adopt bool
}

func (e FormerError) Unwrap() error { return e.WaitingError }

// mayWriteMarked does the same as MayWrite, for an object without a controller. m is its mark: the annotations that name its owner.
func (o *Owner) mayWriteMarked(d *Desired, live client.Object, m record.Mark) error {
	name, ofOurName := d.Kind.Describe(live), m.Owner == o.ObjectName()
	ours := ofOurName && m.UID == o.Reference.UID || m.UID == d.Former
	switch {
	case ours && live.GetDeletionTimestamp() != nil:
		return NewWaiting(ReasonTerminating, 0, name+" is being deleted")
	case ours:
		return nil
	case m.Owner.Kind == o.ObjectName().Kind && d.Options.Adopt,
		ofOurName && m.Retained && d.Options.AdoptRetained && IsWrittenBy(live, o.Set, o.FormerSets),
		ofOurName && d.Options.AdoptRestored && IsWrittenBy(live, o.Set, o.FormerSets):
		return FormerError{Mark: m, Adopt: true, WaitingError: NewWaiting(ReasonTerminating, 0, fmt.Sprintf(
			"%s is adopted when it is certain that its former %s is gone", name, m.Owner.Kind.Kind))}
	case ofOurName && !m.Retained:
		return FormerError{Mark: m, WaitingError: NewWaiting(ReasonTerminating, 0, fmt.Sprintf(
			"%s belongs to a deleted %s of the same name and is being deleted", name, m.Owner.Kind.Kind))}
	}
	return o.MarkedByAnother(d.Kind, live, m)
}

// MarkedByAnother returns the error for an object whose mark (the annotations that name its owner) names another owner.
func (o *Owner) MarkedByAnother(k *Kind, live client.Object, m record.Mark) *OwnershipError {
	return &OwnershipError{
		Kind: k.GVK.Kind, Name: client.ObjectKeyFromObject(live), OwnerNamespace: m.Owner.Namespace,
		Owner:    &metav1.OwnerReference{Kind: m.Owner.Kind.Kind, Name: m.Owner.Name, UID: m.UID},
		Retained: m.Retained && m.Owner == o.ObjectName(),
	}
}

// IsGone reports whether the owner that m names is gone: the API server has no object of this name, or only one with another UID.
func (o *Owner) IsGone(ctx context.Context, m record.Mark) (bool, error) {
	if gone, known := o.gone[m.UID]; known {
		return gone, nil
	}
	live, err := o.readNamed(ctx, m.Owner.NamespacedName)
	if err != nil {
		return false, err
	}
	if o.gone == nil {
		o.gone = map[types.UID]bool{}
	}
	o.gone[m.UID] = live == nil || live.GetUID() != m.UID
	return o.gone[m.UID], nil
}

// ConfirmAlive makes sure that the API server has the owner in the version that we know, before the mark of a child (the annotations that
// name its owner) is set, changed or removed. The garbage collector would not repair a mistake: an object whose mark names a deleted owner
// would stay, and an object that should stay would be deleted if it got a reference to a deleted owner. If the owner has changed, is being
// deleted or is gone, the error is a conflict.
func (o *Owner) ConfirmAlive(ctx context.Context) error {
	if err := o.Confirm(ctx); err != nil || o.confirmed {
		return err
	}
	if pass := passcontext.FromContext(ctx); pass != nil {
		if known, err := pass.ConfirmCurrent(ctx, o.Object); known {
			return err
		}
	}
	return apierrors.NewConflict(schema.GroupResource{Resource: o.Reference.Kind}, o.Reference.Name, errors.New("it was deleted"))
}

// ConfirmDeleted makes sure that the owner is being deleted or gone, before an object whose mark names this owner is deleted. Otherwise the
// error is a conflict.
func (o *Owner) ConfirmDeleted(ctx context.Context) error {
	if o.confirmed {
		return nil
	}
	live, err := o.ReadOwner(ctx)
	if err != nil {
		return err
	}
	if live != nil && live.GetUID() == o.Reference.UID && live.GetDeletionTimestamp() == nil {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.Reference.Kind}, o.Reference.Name, errors.New("it is not being deleted"))
	}
	o.confirmed = true
	return nil
}

// IsManagedBy reports whether a field manager has written an object. If the object has no managed fields, IsManagedBy returns true: the API
// server clears the managed fields of a very large object, so nobody knows who has written it.
func IsManagedBy(obj client.Object, manager client.FieldOwner) bool {
	entries := obj.GetManagedFields()
	for _, entry := range entries {
		if entry.Manager == string(manager) && entry.Subresource == "" {
			return true
		}
	}
	return len(entries) == 0
}

// ReadMetadata reads an object's metadata from the API server, and not from the cache. It returns nil if the object does not exist.
func (o *Owner) ReadMetadata(ctx context.Context, k *Kind, name client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(k.GVK)
	switch err := o.LiveReader().Get(ctx, name, live); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err): // or its kind is not served any more
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", k.GVK.Kind, name, err)
	}
	return live, nil
}
