package ownedresources

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// LabelOwnerUID is set on children that carry no owner reference: those of [Anywhere] and [Retain]. Its value is the
	// UID of the owner, so kubectl finds them all:
	//
	//	kubectl get clusterroles,configmaps --all-namespaces -l opblocks.dev/owner-uid=UID
	LabelOwnerUID = "opblocks.dev/owner-uid"
	// AnnotationOwner is set beside [LabelOwnerUID]. Its value is KIND.GROUP/NAMESPACE/NAME/UID of the owner. The parts
	// are empty where there is none.
	AnnotationOwner = "opblocks.dev/owner"
	// AnnotationObject is set beside [LabelOwnerUID]. Its value is KIND.GROUP/NAMESPACE/NAME of the object itself. A copy
	// of the object under another name, or in another namespace, has the value of the original. So it belongs to nobody.
	AnnotationObject = "opblocks.dev/object"
	// AnnotationRetained is set to "true" on children that stay when the owner is deleted: see [Retain].
	AnnotationRetained = "opblocks.dev/retained"
	// AnnotationBuilder is set on the objects of a child with the option [Retain] if the set has other children of the same kind. It
	// shows which of them built the object, so that the function of this child decides when the object is no longer desired.
	AnnotationBuilder = "opblocks.dev/builder"
)

// binding is how a child shows whose it is.
type binding int

const (
	byReference binding = iota // a controller reference
	byMark                     // LabelOwnerUID and annotations, and no owner reference
	byRetention                // as byMark, and AnnotationRetained
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

// mark is what the annotations of an object say about its owner. Anybody can write annotations: a mark is compared with
// an owner's UID before anything is done for it.
type mark struct {
	owner    objectName
	uid      types.UID // of the owner
	retained bool
}

// markOf returns the mark of an object of a kind. It returns false if there is none, or none that can be parsed, or if
// the mark is that of another object, which this one is a copy of.
func markOf(obj client.Object, kind schema.GroupKind) (mark, bool) {
	annotations := obj.GetAnnotations()
	m, ok := parseOwner(annotations[AnnotationOwner])
	if !ok || annotations[AnnotationObject] != (objectName{kind, client.ObjectKeyFromObject(obj)}).String() {
		return mark{}, false
	}
	m.retained = annotations[AnnotationRetained] == "true"
	return m, true
}

// parseOwner parses a value of AnnotationOwner.
func parseOwner(value string) (mark, bool) {
	if value == "" {
		return mark{}, false
	}
	parts := strings.SplitN(value, "/", 5)
	if len(parts) != 4 || parts[0] == "" || parts[2] == "" || parts[3] == "" {
		return mark{}, false
	}
	return mark{
		owner: objectName{schema.ParseGroupKind(parts[0]), types.NamespacedName{Namespace: parts[1], Name: parts[2]}},
		uid:   types.UID(parts[3]),
	}, true
}

// String returns the name as it is in the annotations.
func (n objectName) String() string {
	return n.kind.String() + "/" + n.name.Namespace + "/" + n.name.Name
}

// objectName returns the owner's kind and name.
func (o *owner) objectName() objectName {
	return objectName{
		kind: schema.FromAPIVersionAndKind(o.reference.APIVersion, o.reference.Kind).GroupKind(),
		name: types.NamespacedName{Namespace: o.namespace, Name: o.reference.Name},
	}
}

// marksFor returns the annotations of an object that is bound to the owner without a reference.
func (o *owner) marksFor(object objectName, b binding) map[string]string {
	marks := map[string]string{
		AnnotationOwner:  o.objectName().String() + "/" + string(o.reference.UID),
		AnnotationObject: object.String(),
	}
	if b == byRetention {
		marks[AnnotationRetained] = "true"
	}
	return marks
}

// bind sets the owner reference or the marks on an object that is to be sent.
func (d *desired) bind(obj client.Object) {
	if d.builder != "" {
		setAnnotation(obj, AnnotationBuilder, d.builder)
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
	maps.Copy(annotations, d.owner.marksFor(d.objectName(), d.binding))
	labels[LabelOwnerUID] = string(d.owner.reference.UID)
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
}

func (d *desired) objectName() objectName {
	return objectName{d.kind.gvk.GroupKind(), client.ObjectKeyFromObject(d.object)}
}

// isBound reports whether a live object has the owner reference or the marks that would be sent, and nothing of the
// other.
func (d *desired) isBound(live client.Object) bool {
	annotations := live.GetAnnotations()
	if d.builder != "" && annotations[AnnotationBuilder] != d.builder {
		return false
	}
	if d.binding == byReference {
		return d.owner.isReferencedBy(live) && annotations[AnnotationOwner] == "" && annotations[AnnotationRetained] == ""
	}
	if refersTo(live, d.owner.reference.UID) || live.GetLabels()[LabelOwnerUID] != string(d.owner.reference.UID) {
		return false
	}
	m, marked := markOf(live, d.kind.gvk.GroupKind())
	return marked && m.uid == d.owner.reference.UID && m.owner == d.owner.objectName() && m.retained == (d.binding == byRetention)
}

// changesBinding reports whether the live object is about to get or lose an owner reference or the marks.
func (d *desired) changesBinding(live client.Object) bool {
	if d.binding == byReference {
		return live.GetAnnotations()[AnnotationOwner] != ""
	}
	m, marked := markOf(live, d.kind.gvk.GroupKind())
	return !marked || m.uid != d.owner.reference.UID || m.retained != (d.binding == byRetention) || refersTo(live, d.owner.reference.UID)
}

// isMarkedBy reports whether a live object has a mark of this owner.
func (o *owner) isMarkedBy(live client.Object, kind schema.GroupKind) bool {
	m, marked := markOf(live, kind)
	return marked && m.uid == o.reference.UID && m.owner == o.objectName()
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
var ownAnnotations = []string{AnnotationApplied, AnnotationSet, AnnotationOrder, AnnotationOwner, AnnotationObject, AnnotationRetained, AnnotationBuilder}

// ownOptionAnnotations are those that options of a child set before, on the desired object.
var ownOptionAnnotations = []string{AnnotationRotated, AnnotationContent, annotationRunOwner}

// withoutOwnMetadata drops this package's annotations and its label from a desired object. They get there in a copy of
// another object's metadata: an owner that is itself a child carries them.
func withoutOwnMetadata(obj client.Object) client.Object {
	_, labelled := obj.GetLabels()[LabelOwnerUID]
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
	delete(labels, LabelOwnerUID)
	obj.SetAnnotations(annotations)
	obj.SetLabels(labels)
	return obj
}
