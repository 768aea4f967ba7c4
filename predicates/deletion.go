package predicates

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// DeletionStarted passes the events that tell of a deletion for the first time:
//
//	Create   the object is being deleted: that began while the operator was down
//	Update   the new object is being deleted and the old one was not, or they are two objects of one name
//	Delete   always: an object without finalizers goes without an update before
//	Generic  the object is being deleted
//
// Beside filters that drop what they do not know, combine it by predicate.Or, or no cleanup runs.
func DeletionStarted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isDeleted(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if isNil(e.ObjectOld) || isNil(e.ObjectNew) {
				return isDeleted(e.ObjectOld) || isDeleted(e.ObjectNew)
			}
			return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || isDeleted(e.ObjectNew) && !isDeleted(e.ObjectOld)
		},
		DeleteFunc:  func(e event.DeleteEvent) bool { return !isNil(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return isDeleted(e.Object) },
	}
}

func isDeleted(obj client.Object) bool {
	return !isNil(obj) && !obj.GetDeletionTimestamp().IsZero()
}
