package owned

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/internal/record"
)

// Binding says how the metadata of a child names its owner: by an owner reference, or by a mark (a label and annotations, see
// [record.Mark]).
type Binding int

// The bindings.
const (
	ByReference Binding = iota // a controller reference to the owner
	ByMark                     // a mark that names the owner, and no owner reference
	ByRetention                // the same, and the annotation opblocks.dev/retained: the child stays when the owner is deleted
)

// BindingFor returns the Binding of a child with these options.
func (o *Options) BindingFor(owner client.Object) Binding {
	switch {
	case o.Retain != nil && o.Retain(owner):
		return ByRetention
	case o.Anywhere:
		return ByMark
	}
	return ByReference
}

// ObjectName returns the owner's kind and name.
func (o *Owner) ObjectName() record.Name {
	return record.Name{
		Kind:           schema.FromAPIVersionAndKind(o.Reference.APIVersion, o.Reference.Kind).GroupKind(),
		NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Reference.Name},
	}
}

// MarkFor returns the mark (the label and the annotations that name the owner) for a child that has no owner reference.
func (o *Owner) MarkFor(b Binding) record.Mark {
	return record.Mark{Owner: o.ObjectName(), UID: o.Reference.UID, Retained: b == ByRetention}
}

// Bind sets on an object that is to be sent either the owner reference, or the mark (the label and the annotations that name the owner).
func (d *Desired) Bind(obj client.Object) {
	if d.Builder != "" {
		SetAnnotation(obj, record.Builder, d.Builder)
	}
	references := WithoutReferenceTo(obj, d.Owner.Reference.UID)
	if d.Binding == ByReference {
		obj.SetOwnerReferences(append(references, d.Owner.Reference))
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
	maps.Copy(annotations, d.Owner.MarkFor(d.Binding).Annotations(d.ObjectName()))
	labels[record.OwnerUID] = string(d.Owner.Reference.UID)
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
}

// ObjectName returns the kind and the name of the object.
func (d *Desired) ObjectName() record.Name {
	return record.NameOf(d.Kind.GVK.GroupKind(), d.Object)
}

// IsBound reports whether a live object already names its owner as a write would make it do: by the owner reference and no mark, or by the
// mark (a label and annotations, see [record.Mark]) and no owner reference.
func (d *Desired) IsBound(live client.Object) bool {
	annotations := live.GetAnnotations()
	if d.Builder != "" && annotations[record.Builder] != d.Builder {
		return false
	}
	if d.Binding == ByReference {
		return d.Owner.isReferencedBy(live) && annotations[record.Owner] == "" && annotations[record.Retained] == ""
	}
	if RefersTo(live, d.Owner.Reference.UID) || live.GetLabels()[record.OwnerUID] != string(d.Owner.Reference.UID) {
		return false
	}
	m, marked := record.MarkOf(live, d.Kind.GVK.GroupKind())
	return marked && m.UID == d.Owner.Reference.UID && m.Owner == d.Owner.ObjectName() && m.Retained == (d.Binding == ByRetention)
}

// ChangesBinding reports whether a write would add or remove the owner reference or the mark (the annotations that name the owner).
func (d *Desired) ChangesBinding(live client.Object) bool {
	if d.Binding == ByReference {
		return live.GetAnnotations()[record.Owner] != ""
	}
	m, marked := record.MarkOf(live, d.Kind.GVK.GroupKind())
	return !marked || m.UID != d.Owner.Reference.UID || m.Retained != (d.Binding == ByRetention) || RefersTo(live, d.Owner.Reference.UID)
}

// IsMarkedBy reports whether the mark of a live object (the annotations that name its owner) names this owner.
func (o *Owner) IsMarkedBy(live client.Object, kind schema.GroupKind) bool {
	m, marked := record.MarkOf(live, kind)
	return marked && m.UID == o.Reference.UID && m.Owner == o.ObjectName()
}

// RefersTo reports whether an object has an owner reference to the owner with this UID, as its controller or not.
func RefersTo(obj client.Object, owner types.UID) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == owner })
}

// WithoutReferenceTo returns the owner references of an object, except the reference to the owner with this UID.
func WithoutReferenceTo(obj client.Object, owner types.UID) (others []metav1.OwnerReference) {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.UID != owner {
			others = append(others, ref)
		}
	}
	return others
}

// ownAnnotations are the annotations that the writes of this library set on children. ownOptionAnnotations are the annotations that
// options of a child set on the desired object, after withoutOwnMetadata was called. So if withoutOwnMetadata finds one of them, the
// builder has copied it from another object.
var (
	ownAnnotations = record.OnChildren(record.AsAnnotation, func(k record.ChildKey) bool {
		return k.By == record.SetByWrite || k.By == record.SetByMark
	})
	ownOptionAnnotations = record.OnChildren(record.AsAnnotation, func(k record.ChildKey) bool { return k.By == record.SetByOption })
)

// withoutOwnMetadata removes the annotations and the label that this library sets on children from a desired object. A desired object has
// them if its builder copies the metadata of an object that has them, such as an owner that is itself a child.
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

// hasWritten reports whether the annotations of a live object say that the owner's set wrote it for an owner of this kind, namespace and
// name. That owner may have had another UID. Older versions of this module did not write the annotation opblocks.dev/owner-name: if it is
// missing, the name of the set suffices.
func (o *Owner) hasWritten(live client.Object) bool {
	name := live.GetAnnotations()[record.OwnerName]
	return (name == "" || name == o.ObjectName().String()) && IsWrittenBy(live, o.Set, o.FormerSets)
}

// IsWrittenBy reports whether the annotations of a live object say that the set of this name, or of one of its former names, wrote it.
func IsWrittenBy(live client.Object, set string, former []string) bool {
	name := live.GetAnnotations()[record.Set]
	return (name == set || slices.Contains(former, name)) && record.LastAppliedOf(live).Method != record.ByOthers
}
