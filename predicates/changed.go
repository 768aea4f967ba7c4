package predicates

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// FieldChanged passes updates that change the value that field returns, and all events that are not updates:
//
//	Create   always
//	Update   field returns different values for the old and the new object, or the two have different UIDs
//	Delete   always
//	Generic  always
//
// T is the object type of the watch. Updates of objects of another type pass. To compare several fields, return an array or
// a struct: func(p *corev1.Pod) [2]string { return [2]string{p.Spec.NodeName, p.Status.PodIP} }. Do not return a pointer:
// the pointers of the old and the new object always differ. Return the value to which it points. For values that == cannot
// compare, use [SpecChanged].
func FieldChanged[T client.Object, F comparable](field func(T) F) predicate.Predicate {
	return changed(func(before, after T) bool { return field(before) != field(after) })
}

// SpecChanged passes updates that change the value that spec returns, and all events that are not updates, as
// [FieldChanged] does. The value can have any type, such as a whole spec, or the data of a kind that has no spec. It is
// compared with equality.Semantic: quantities and times by value, and an empty list equals a nil list.
// equality.Semantic panics on structs with unexported fields. API types have no such fields.
//
// Unlike [GenerationChanged], it drops the update that starts a deletion. Combine it with [DeletionStarted] for objects
// with finalizers.
func SpecChanged[T client.Object, S any](spec func(T) S) predicate.Predicate {
	return changed(func(before, after T) bool { return !equality.Semantic.DeepEqual(spec(before), spec(after)) })
}

// GenerationChanged passes updates that change metadata.generation, and all events that are not updates, as
// [FieldChanged] does. The API server decides what changes the generation:
//
//   - A change of the spec changes it. For a custom resource, so does a change of any other field, except metadata and, if it is
//     a subresource, status.
//   - The start of a deletion changes it, if the object has a finalizer.
//   - Changes of labels, annotations, finalizers and owner references do not change it, except the annotations of a
//     Deployment.
//   - For a custom resource without the status subresource, every write of the status changes it. A controller that writes such a
//     status triggers its own next reconcile.
//
// If a kind has no generation, such as ConfigMap, Secret and ServiceAccount, every write passes, because the predicate
// cannot know what changed. (controller-runtime's GenerationChangedPredicate drops all their updates.) Resyncs are dropped.
func GenerationChanged() predicate.Predicate {
	return changed(func(before, after client.Object) bool {
		if before.GetGeneration() == 0 && after.GetGeneration() == 0 {
			return before.GetResourceVersion() != after.GetResourceVersion()
		}
		return before.GetGeneration() != after.GetGeneration()
	})
}

// ConditionChanged passes updates that add or remove the condition of this type, or change its status, reason or
// observed generation, and all events that are not updates, as [FieldChanged] does. Messages and times are not
// compared. The function conditions returns the conditions of an object. If the condition struct is not
// metav1.Condition, use FieldChanged.
//
// Use it to watch objects that another controller reconciles. A controller that uses it for its own kind would trigger
// reconciles by its own status writes.
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

// changed returns a predicate that passes updates for which differs returns true, and all events that are not
// updates. If an object was deleted and created again while a watch was interrupted, the cache reports an update from
// the old object to the new one. Such an update always passes.
func changed[T client.Object](differs func(before, after T) bool) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !isNil(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if isNil(e.ObjectOld) || isNil(e.ObjectNew) {
				return !isNil(e.ObjectOld) || !isNil(e.ObjectNew)
			}
			before, beforeOK := e.ObjectOld.(T)
			after, afterOK := e.ObjectNew.(T)
			return !beforeOK || !afterOK || before.GetUID() != after.GetUID() || differs(before, after)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return !isNil(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return !isNil(e.Object) },
	}
}
