package conditions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Remove takes every condition of that type out of the list and reports whether there was one.
// Like [Set] it replaces the slice and keeps the order. What remains is never nil after a removal: a list that the
// schema requires would otherwise be sent as null and refused.
func Remove(list *[]metav1.Condition, conditionType string) (changed bool) {
	return standard.Remove(list, conditionType)
}

// Remove is [Remove] over a list of C.
func (e Editor[C]) Remove(list *[]C, conditionType string) (changed bool) {
	if list == nil || e.index(*list, conditionType) < 0 {
		return false
	}
	kept := make([]C, 0, len(*list)-1)
	for _, c := range *list {
		if e.adapter.Read(c).Type != conditionType {
			kept = append(kept, c)
		}
	}
	*list = kept
	return true
}
