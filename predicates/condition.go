package predicates

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

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
