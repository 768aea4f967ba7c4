package ownedresources

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/fieldmanager"
	"github.com/opblocks/opblocks/internal/passcontext"
	"github.com/opblocks/opblocks/internal/record"
)

// owner is the object whose children are applied, in one pass.
type owner struct {
	client       client.Client
	object       client.Object
	namespace    string
	reference    metav1.OwnerReference
	fieldManager client.FieldOwner
	set          string     // name of the set that the children belong to
	formerSets   []string   // its earlier names
	builtFrom    *builtFrom // nil outside of a set
	finalizers   []string   // the finalizers of that set under its present name and its earlier ones; nil if it needs none
	done         map[outcome]*doneEvent
	confirmed    bool               // whether the owner was compared with the API server's version
	gone         map[types.UID]bool // by the UID in a mark: whether that owner is gone, see applier.isGone
}

func newOwner(obj client.Object, c client.Client) (owner, error) {
	if isNil(obj) {
		return owner{}, fmt.Errorf("owner is nil: give the object that the children belong to")
	}
	k, err := ownerKindOf(obj, c.Scheme())
	if err != nil {
		return owner{}, err
	}
	if obj.GetUID() == "" {
		return owner{}, fmt.Errorf("owner %s %s has no UID: children can only belong to an object that was read from the API server (in a unit test, set its UID)",
			k.kind, client.ObjectKeyFromObject(obj))
	}
	return owner{
		client:    c,
		object:    obj,
		namespace: obj.GetNamespace(),
		reference: metav1.OwnerReference{
			APIVersion: k.apiVersion, Kind: k.kind, Name: obj.GetName(), UID: obj.GetUID(),
			Controller: new(true), BlockOwnerDeletion: new(true),
		},
		fieldManager: k.fieldManager,
	}, nil
}

// isSet reports whether the set that the children belong to has this name, or had it in an earlier release.
func (o *owner) isSet(name string) bool { return name == o.set || slices.Contains(o.formerSets, name) }

// ownerKind is what is looked up once for an owner's Go type.
type ownerKind struct {
	apiVersion, kind string
	fieldManager     client.FieldOwner
}

// ownerKinds caches them. Each is a function of its key.
var ownerKinds sync.Map // kindKey → ownerKind

func ownerKindOf(obj client.Object, scheme *runtime.Scheme) (ownerKind, error) {
	key := kindKey{scheme: scheme, typ: reflect.TypeOf(obj)}
	if u, untyped := obj.(*unstructured.Unstructured); untyped {
		key.gvk = u.GroupVersionKind()
	}
	if known, ok := ownerKinds.Load(key); ok {
		return known.(ownerKind), nil
	}
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return ownerKind{}, fmt.Errorf("kind of the owner: %w: add its types to the scheme", err)
	}
	k := ownerKind{apiVersion: gvk.GroupVersion().String(), kind: gvk.Kind, fieldManager: fieldmanager.For(gvk)}
	ownerKinds.Store(key, k)
	return k, nil
}

func (o *owner) String() string {
	if o.namespace == "" {
		return o.reference.Kind + " " + o.reference.Name
	}
	return o.reference.Kind + " " + o.namespace + "/" + o.reference.Name
}

// mayWrite returns nil if the live object is controlled by the owner, or has its mark, or may be adopted. Otherwise it returns
// an [*OwnershipError], a [*WaitingError], an orphanError or a formerError.
func (o *owner) mayWrite(d *desired, live client.Object) error {
	k := d.kind
	controller := metav1.GetControllerOfNoCopy(live)
	if controller == nil {
		if m, marked := record.MarkOf(live, k.gvk.GroupKind()); marked {
			return o.mayWriteMarked(d, live, m)
		}
	}
	switch {
	case controller == nil && d.options.adopt && live.GetDeletionTimestamp() == nil:
		return nil
	case controller == nil:
		return &OwnershipError{Kind: k.gvk.Kind, Name: client.ObjectKeyFromObject(live)}
	case controller.UID == o.reference.UID:
		if live.GetDeletionTimestamp() != nil {
			return &WaitingError{reason: reasonTerminating, message: k.describe(live) + " is being deleted"}
		}
		return nil
	case controller.Name == o.reference.Name && controller.Kind == o.reference.Kind && sameGroup(controller.APIVersion, o.reference.APIVersion):
		return orphanError{&WaitingError{reason: reasonTerminating, message: fmt.Sprintf(
			"%s belongs to a deleted %s of the same name and waits for the garbage collector", k.describe(live), controller.Kind)}}
	}
	return &OwnershipError{Kind: k.gvk.Kind, Name: client.ObjectKeyFromObject(live), Owner: controller.DeepCopy()}
}

func sameGroup(a, b string) bool {
	groupOf := func(apiVersion string) string {
		group, _, found := strings.Cut(apiVersion, "/")
		if !found {
			return ""
		}
		return group
	}
	return groupOf(a) == groupOf(b)
}

// isReferencedBy reports whether the live object's controller reference is the one that would be applied.
func (o *owner) isReferencedBy(live client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID == o.reference.UID && ref.APIVersion == o.reference.APIVersion &&
		ref.Kind == o.reference.Kind && ref.Name == o.reference.Name &&
		ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// garbageCollectorDelay is how long the garbage collector may take to delete an orphan. It usually takes seconds. But
// if its watch broke while an owner was deleted and recreated under the same name, it takes the new owner for the old
// one, and never deletes the orphan.
const garbageCollectorDelay = time.Minute

// orphanError is returned for a child whose controller is a former owner.
type orphanError struct{ *WaitingError }

func (e orphanError) Unwrap() error { return e.WaitingError }

// deleteOrphan deletes an orphan that the garbage collector has not deleted in time, if no other owner keeps it. The event
// of its deletion triggers the reconcile that creates our object. It always returns an error, which is a [WaitingError] if
// nothing failed.
func (a *applier) deleteOrphan(ctx context.Context, d *desired, live client.Object, orphan orphanError) error {
	wait, now := *orphan.WaitingError, a.clock.Now()
	deadline := a.children.orphanSince(live.GetUID(), now).Add(garbageCollectorDelay)
	if wait.after = max(0, deadline.Sub(now)); wait.after > 0 {
		return &wait
	}
	wait.after = garbageCollectorDelay
	if len(live.GetOwnerReferences()) != 1 || live.GetDeletionTimestamp() != nil {
		return &wait
	}
	// The cache may be behind: perhaps our owner is the one that was deleted, and its namesake lives.
	switch current, err := a.readOwner(ctx, d.owner); {
	case err != nil:
		return err
	case current == nil || current.GetUID() != d.owner.reference.UID:
		return &wait
	}
	if err := deleteExactly(ctx, d.owner.client, live, metav1.DeletePropagationBackground); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s, whose owner is gone: %w", d, err)
	}
	a.report(ctx, d.owner, d.kind, live, outcomeDeleted, "its owner is gone")
	return &wait
}

// confirm makes sure that the owner is as the API server has it, before an object is deleted for it. The cache of a process
// that has just started may show an owner as it was long ago, when it did not desire what it desires now. A conflict error
// means that the owner has changed.
//
// In a pass of package reconcile the owner is read at most once in the life of the process. Elsewhere it is read once for
// all that a call deletes.
func (a *applier) confirm(ctx context.Context, o *owner) error {
	if pass := passcontext.FromContext(ctx); pass != nil {
		if known, err := pass.ConfirmCurrent(ctx, o.object); known {
			return err
		}
	}
	if o.confirmed {
		return nil
	}
	live, err := a.readOwner(ctx, o)
	if err != nil || live == nil || live.GetUID() != o.reference.UID { // all children of an owner that is gone are deleted anyway
		return err
	}
	if version := o.object.GetResourceVersion(); live.GetResourceVersion() != version {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.reference.Kind}, o.reference.Name,
			fmt.Errorf("it has changed since version %q, which its children were built from: read it again", version))
	}
	o.confirmed = true
	return nil
}

// readOwner reads the owner past the cache. It returns nil if no object has its name.
func (a *applier) readOwner(ctx context.Context, o *owner) (client.Object, error) {
	return a.readNamed(ctx, o, client.ObjectKeyFromObject(o.object))
}

// readNamed reads an object of the owner's kind past the cache. It returns nil if there is none.
func (a *applier) readNamed(ctx context.Context, o *owner, name types.NamespacedName) (client.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.reference.APIVersion, o.reference.Kind))
	switch err := a.liveReader(o).Get(ctx, name, u); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", o.reference.Kind, strings.TrimPrefix(name.String(), "/"), err)
	}
	return u, nil
}
