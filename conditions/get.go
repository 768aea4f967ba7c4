package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Get returns the condition of that type and whether there is one. Of several with the same type the first counts.
func Get(list []metav1.Condition, conditionType string) (metav1.Condition, bool) {
	return standard.Get(list, conditionType)
}

// IsTrue reports whether there is a condition of that type with status True. Absent and Unknown are not true.
func IsTrue(list []metav1.Condition, conditionType string) bool {
	return standard.IsTrue(list, conditionType)
}

// Get is [Get] over a list of C.
func (e Editor[C]) Get(list []C, conditionType string) (C, bool) {
	if i := e.index(list, conditionType); i >= 0 {
		return list[i], true
	}
	var none C
	return none, false
}

// IsTrue is [IsTrue] over a list of C.
func (e Editor[C]) IsTrue(list []C, conditionType string) bool {
	i := e.index(list, conditionType)
	return i >= 0 && e.adapter.Read(list[i]).Status == metav1.ConditionTrue
}

// index is that of the first condition of the type, or -1.
func (e Editor[C]) index(list []C, conditionType string) int {
	for i := range list {
		if e.adapter.Read(list[i]).Type == conditionType {
			return i
		}
	}
	return -1
}
