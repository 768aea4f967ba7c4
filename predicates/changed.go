package predicates

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// GenerationChanged passes updates that change metadata.generation, and everything that is no update, as [FieldChanged]
// does. What moves the generation is the API server's decision:
//
//   - a change of the spec does; of a custom resource so does every other field but metadata and, where it is a subresource, status;
//   - the beginning of a deletion does, when a finalizer holds the object;
//   - labels, annotations, finalizers and owner references do not, except that annotations of a Deployment do;
//   - a custom resource without the status subresource gets a new generation with each write of its status, which makes a
//     controller that writes it wake itself.
//
// Kinds without generation, such as ConfigMap, Secret and ServiceAccount, pass with every write, since nothing is known;
// controller-runtime's GenerationChangedPredicate drops all their updates. Their resyncs do not pass.
func GenerationChanged() predicate.Predicate {
	return changed(func(before, after client.Object) bool {
		if before.GetGeneration() == 0 && after.GetGeneration() == 0 {
			return before.GetResourceVersion() != after.GetResourceVersion()
		}
		return before.GetGeneration() != after.GetGeneration()
	})
}

// ConditionChanged passes updates in which the condition of this type comes, goes, or gets another status, reason or
// observed generation, and everything that is no update, as [FieldChanged] does. Messages and times do not count. For
// conditions that are another struct than metav1.Condition use FieldChanged.
//
// It is for watching the objects of others. Under a filter for one's own object, it makes a controller wake itself.
func ConditionChanged[T client.Object](conditionType string, conditions func(T) []metav1.Condition) predicate.Predicate {
	return FieldChanged(func(obj T) metav1.Condition {
		for _, c := range conditions(obj) {
			if c.Type == conditionType {
				return metav1.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason, ObservedGeneration: c.ObservedGeneration}
			}
		}
		return metav1.Condition{}
	})
}
