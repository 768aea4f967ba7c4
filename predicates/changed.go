package predicates

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// FieldChanged passes updates that change what field gives, and everything that is no update:
//
//	Create   always
//	Update   field of the old object differs from field of the new one, or these are two objects of one name
//	Delete   always
//	Generic  always
//
// T is the type that the watch is for; updates of objects of another type pass. An array or a struct of several fields is
// comparable too: func(p *corev1.Pod) [2]string { return [2]string{p.Spec.NodeName, p.Status.PodIP} }. A pointer is equal to
// itself only, and so differs in every update: give the value that it points to.
func FieldChanged[T client.Object, F comparable](field func(T) F) predicate.Predicate {
	return changed(func(before, after T) bool { return field(before) != field(after) })
}

// SpecChanged is [FieldChanged] for what == cannot compare: a whole spec, or the data of a kind that has no spec. Quantities
// and times are compared by value, and an empty list equals an absent one (equality.Semantic, which panics on a struct with
// unexported fields: API types have none).
//
// Unlike [GenerationChanged] it does not pass the beginning of a deletion: combine it with [DeletionStarted] where there are
// finalizers.
func SpecChanged[T client.Object, S any](spec func(T) S) predicate.Predicate {
	return changed(func(before, after T) bool { return !equality.Semantic.DeepEqual(spec(before), spec(after)) })
}

// changed passes updates by their difference. When a watch was interrupted, an object that was deleted and created anew
// meanwhile comes as an update from one to the other: that is a change whatever they hold.
func changed[T client.Object](differs func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !isNil(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if isNil(e.ObjectOld) || isNil(e.ObjectNew) {
				return !isNil(e.ObjectOld) || !isNil(e.ObjectNew)
			}
			before, ok := e.ObjectOld.(T)
			after, alike := e.ObjectNew.(T)
			return !ok || !alike || before.GetUID() != after.GetUID() || differs(before, after)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return !isNil(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return !isNil(e.Object) },
	}
}
