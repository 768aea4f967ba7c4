package ownedresources

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/opblocks/opblocks/internal/fieldmanager"
)

// owner is the object whose children are applied.
type owner struct {
	client       client.Client
	object       client.Object
	namespace    string
	reference    metav1.OwnerReference
	fieldManager client.FieldOwner
	set          string // name of the set that the children belong to
	deeds        map[deed][]string
	confirmed    bool // to be what the API server has
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

// ownerKind is what has to be known of an owner's Go type once.
type ownerKind struct {
	apiVersion, kind string
	fieldManager     client.FieldOwner
}

// ownerKinds remembers them: each is a function of its key.
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

// owns gives nil if the live object is ours to write to, or may become ours.
func (o *owner) owns(w *wanted, live client.Object) error {
	k := w.kind
	controller := metav1.GetControllerOfNoCopy(live)
	switch {
	case controller == nil && w.options.adopt && live.GetDeletionTimestamp() == nil:
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

// referencedBy reports whether the controller reference is as we want it.
func (o *owner) referencedBy(live client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID == o.reference.UID && ref.APIVersion == o.reference.APIVersion &&
		ref.Kind == o.reference.Kind && ref.Name == o.reference.Name &&
		ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}
