package owned

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

// Owner is the object whose children are applied, for the time of one reconcile.
type Owner struct {
	Client       client.Client
	APIReader    client.Reader // reads from the API server, past the cache; nil without a manager
	Object       client.Object
	Seen         client.Object // the owner as the functions that build children get it: without the annotations that this library stores on owners
	Namespace    string
	Reference    metav1.OwnerReference
	FieldManager client.FieldOwner
	Set          string     // name of the set that the children belong to
	FormerSets   []string   // the names that the set had in earlier releases
	BuiltFrom    *BuiltFrom // nil outside of a set
	Finalizers   []string   // the finalizers of the set under its present name and its former names; nil if the set needs no finalizer
	Done         map[Outcome]*DoneEvent
	confirmed    bool               // the owner was compared with the API server's version
	gone         map[types.UID]bool // the answers of IsGone: whether the owner with this UID is gone
}

// NewOwner returns obj as an [Owner]. c is the client that writes its children. apiReader reads past the cache, and is nil without a
// manager.
func NewOwner(obj client.Object, c client.Client, apiReader client.Reader) (Owner, error) {
	if IsNil(obj) {
		return Owner{}, fmt.Errorf("owner is nil: give the object that the children belong to")
	}
	k, err := ownerKindOf(obj, c.Scheme())
	if err != nil {
		return Owner{}, err
	}
	if obj.GetUID() == "" {
		return Owner{}, fmt.Errorf("owner %s %s has no UID: children can only belong to an object that was read from the API server (in a unit test, set its UID)",
			k.kind, client.ObjectKeyFromObject(obj))
	}
	return Owner{
		Client:    c,
		APIReader: apiReader,
		Object:    obj,
		Seen:      obj,
		Namespace: obj.GetNamespace(),
		Reference: metav1.OwnerReference{
			APIVersion: k.apiVersion, Kind: k.kind, Name: obj.GetName(), UID: obj.GetUID(),
			Controller: new(true), BlockOwnerDeletion: new(true),
		},
		FieldManager: k.fieldManager,
	}, nil
}

// IsSet reports whether the set that the children belong to has this name, or had it in an earlier release.
func (o *Owner) IsSet(name string) bool { return name == o.Set || slices.Contains(o.FormerSets, name) }

// ownerKind is what is looked up once for an owner's Go type.
type ownerKind struct {
	apiVersion, kind string
	fieldManager     client.FieldOwner
}

// ownerKinds caches the result of ownerKindOf, which depends only on the key.
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

func (o *Owner) String() string {
	if o.Namespace == "" {
		return o.Reference.Kind + " " + o.Reference.Name
	}
	return o.Reference.Kind + " " + o.Namespace + "/" + o.Reference.Name
}

// MayWrite returns nil if the live object is controlled by the owner, or has annotations that name the owner, or may be adopted. Otherwise
// it returns an [*OwnershipError], a [*WaitingError], an [OrphanError] or a [FormerError].
func (o *Owner) MayWrite(d *Desired, live client.Object) error {
	k := d.Kind
	controller := metav1.GetControllerOfNoCopy(live)
	if controller == nil {
		if m, marked := record.MarkOf(live, k.GVK.GroupKind()); marked {
			return o.mayWriteMarked(d, live, m)
		}
	}
	switch {
	case controller == nil && live.GetDeletionTimestamp() == nil && (d.Options.Adopt || d.Options.AdoptRestored && o.hasWritten(live)):
		return nil
	case controller == nil:
		return o.uncontrolled(k, live)
	case controller.UID == o.Reference.UID:
		if live.GetDeletionTimestamp() != nil {
			return NewWaiting(ReasonTerminating, 0, k.Describe(live)+" is being deleted")
		}
		return nil
	case o.hasNameOf(controller, live):
		return OrphanError{
			WaitingError: NewWaiting(ReasonTerminating, 0, fmt.Sprintf(
				"%s belongs to a deleted %s of the same name and waits for the garbage collector", k.Describe(live), controller.Kind)),
			Restored: d.Options.AdoptRestored && live.GetDeletionTimestamp() == nil && o.hasWritten(live),
			Former:   controller.UID,
		}
	}
	return &OwnershipError{Kind: k.GVK.Kind, Name: client.ObjectKeyFromObject(live), Owner: controller.DeepCopy()}
}

// hasNameOf reports whether the controller of a live object has the owner's kind, namespace and name, whatever its UID. The controller is
// in the namespace of the live object, or it is cluster-scoped.
func (o *Owner) hasNameOf(controller *metav1.OwnerReference, live client.Object) bool {
	return controller.Name == o.Reference.Name && controller.Kind == o.Reference.Kind && sameGroup(controller.APIVersion, o.Reference.APIVersion) &&
		(o.Namespace == "" || o.Namespace == live.GetNamespace())
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

// isReferencedBy reports whether the live object's controller reference is exactly the one that an apply would set.
func (o *Owner) isReferencedBy(live client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID == o.Reference.UID && ref.APIVersion == o.Reference.APIVersion &&
		ref.Kind == o.Reference.Kind && ref.Name == o.Reference.Name &&
		ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}

// GarbageCollectorDelay is how long the garbage collector may take to delete an orphan: a child whose owner is deleted. It usually takes
// seconds. But if the garbage collector's watch was interrupted while an owner was deleted and created again under the same name, the
// garbage collector mistakes the new owner for the old one, and never deletes the orphan.
const GarbageCollectorDelay = time.Minute

// OrphanError is returned for a live child whose controller is a former owner: a deleted owner of the same name.
type OrphanError struct {
	*WaitingError
	Restored bool      // [ownedresources.Child.AdoptRestored] allows the present owner to adopt the object
	Former   types.UID // the UID of the former owner
}

func (e OrphanError) Unwrap() error { return e.WaitingError }

// Confirm makes sure that we have the owner in the version that the API server has, before an object is deleted for it. The cache of a
// process that has just started may show an old version of the owner, for which other children are desired. If the owner has changed, the
// error is a conflict.
//
// In a reconcile by package reconcile, the owner is read at most once in the life of the process. Elsewhere it is read once for all
// deletions of a call.
func (o *Owner) Confirm(ctx context.Context) error {
	if pass := passcontext.FromContext(ctx); pass != nil {
		if known, err := pass.ConfirmCurrent(ctx, o.Object); known {
			return err
		}
	}
	if o.confirmed {
		return nil
	}
	live, err := o.ReadOwner(ctx)
	if err != nil || live == nil || live.GetUID() != o.Reference.UID { // the children of a deleted owner are deleted anyway
		return err
	}
	if version := o.Object.GetResourceVersion(); live.GetResourceVersion() != version {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.Reference.Kind}, o.Reference.Name,
			fmt.Errorf("it has changed since version %q, which its children were built from: read it again", version))
	}
	o.confirmed = true
	return nil
}

// ReadOwner reads the owner from the API server. It returns nil if no object has the owner's name.
func (o *Owner) ReadOwner(ctx context.Context) (client.Object, error) {
	return o.readNamed(ctx, client.ObjectKeyFromObject(o.Object))
}

// readNamed reads an object of the owner's kind from the API server. If no object has the name, it returns nil.
func (o *Owner) readNamed(ctx context.Context, name types.NamespacedName) (client.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(o.Reference.APIVersion, o.Reference.Kind))
	switch err := o.LiveReader().Get(ctx, name, u); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", o.Reference.Kind, strings.TrimPrefix(name.String(), "/"), err)
	}
	return u, nil
}
