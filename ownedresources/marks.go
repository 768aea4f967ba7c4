package ownedresources

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// binding is how a child shows whose it is.
type binding int

const (
	byReference binding = iota // a controller reference
	byMark                     // a mark, and no owner reference
	byRetention                // a mark with opblocks.dev/retained, and no owner reference
)

// bindingFor returns how a child with these options is bound to the owner.
func (o *childOptions) bindingFor(owner client.Object) binding {
	switch {
	case o.retain != nil && o.retain(owner):
		return byRetention
	case o.anywhere:
		return byMark
	}
	return byReference
}

// objectName returns the owner's kind and name.
func (o *owner) objectName() record.Name {
	return record.Name{
		Kind:           schema.FromAPIVersionAndKind(o.reference.APIVersion, o.reference.Kind).GroupKind(),
		NamespacedName: types.NamespacedName{Namespace: o.namespace, Name: o.reference.Name},
	}
}

// markFor returns the mark of an object that is bound to the owner without a reference.
func (o *owner) markFor(b binding) record.Mark {
	return record.Mark{Owner: o.objectName(), UID: o.reference.UID, Retained: b == byRetention}
}

// bind sets the owner reference or the mark on an object that is to be sent.
func (d *desired) bind(obj client.Object) {
	if d.builder != "" {
		setAnnotation(obj, record.Builder, d.builder)
	}
	references := withoutReferenceTo(obj, d.owner.reference.UID)
	if d.binding == byReference {
		obj.SetOwnerReferences(append(references, d.owner.reference))
		return
	}
	obj.SetOwnerReferences(references)
	annotations, labels := obj.GetAnnotations(), obj.GetLabels()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(annotations, d.owner.markFor(d.binding).Annotations(d.objectName()))
	labels[record.OwnerUID] = string(d.owner.reference.UID)
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
}

func (d *desired) objectName() record.Name {
	return record.NameOf(d.kind.gvk.GroupKind(), d.object)
}

// isBound reports whether a live object has what would be sent: the owner reference and no mark, or the mark and no
// owner reference.
func (d *desired) isBound(live client.Object) bool {
	annotations := live.GetAnnotations()
	if d.builder != "" && annotations[record.Builder] != d.builder {
		return false
	}
	if d.binding == byReference {
		return d.owner.isReferencedBy(live) && annotations[record.Owner] == "" && annotations[record.Retained] == ""
	}
	if refersTo(live, d.owner.reference.UID) || live.GetLabels()[record.OwnerUID] != string(d.owner.reference.UID) {
		return false
	}
	m, marked := record.MarkOf(live, d.kind.gvk.GroupKind())
	return marked && m.UID == d.owner.reference.UID && m.Owner == d.owner.objectName() && m.Retained == (d.binding == byRetention)
}

// changesBinding reports whether the live object is about to get or lose an owner reference or a mark.
func (d *desired) changesBinding(live client.Object) bool {
	if d.binding == byReference {
		return live.GetAnnotations()[record.Owner] != ""
	}
	m, marked := record.MarkOf(live, d.kind.gvk.GroupKind())
	return !marked || m.UID != d.owner.reference.UID || m.Retained != (d.binding == byRetention) || refersTo(live, d.owner.reference.UID)
}

// isMarkedBy reports whether a live object has a mark of this owner.
func (o *owner) isMarkedBy(live client.Object, kind schema.GroupKind) bool {
	m, marked := record.MarkOf(live, kind)
	return marked && m.UID == o.reference.UID && m.Owner == o.objectName()
}

func refersTo(obj client.Object, owner types.UID) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
}

func withoutReferenceTo(obj client.Object, owner types.UID) (others []metav1.OwnerReference) {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.UID != owner {
			others = append(others, ref)
		}
	}
	return others
}

// ownAnnotations are the annotations that this package sets when it sends an object.
var ownAnnotations = []string{record.Applied, record.Set, record.Order, record.Owner, record.Object, record.Retained, record.Builder, record.BuiltFrom}

// ownOptionAnnotations are the annotations that options of a child set earlier, on the desired object.
var ownOptionAnnotations = []string{record.Rotated, record.Content, record.RunOwner}

// withoutOwnMetadata drops this package's annotations and its label from a desired object. They get there in a copy of
// another object's metadata: an owner that is itself a child carries them.
func withoutOwnMetadata(obj client.Object) client.Object {
	_, labelled := obj.GetLabels()[record.OwnerUID]
	annotations := obj.GetAnnotations()
	isOwn := func(key string) bool { _, is := annotations[key]; return is }
	if !labelled && (len(annotations) == 0 || !slices.ContainsFunc(ownAnnotations, isOwn)) {
		return obj
	}
	obj = obj.DeepCopyObject().(client.Object)
	annotations, labels := obj.GetAnnotations(), obj.GetLabels()
	for _, key := range slices.Concat(ownAnnotations, ownOptionAnnotations) {
		delete(annotations, key)
	}
	delete(labels, record.OwnerUID)
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
	return obj
}
