package predicates

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// DeletionStarted passes the first event that shows that an object is being deleted:
//
//	Create   the object is being deleted, since the deletion started while the operator was down
//	Update   the new object is being deleted and the old one was not, or the two have different UIDs
//	Delete   always, since an object without finalizers is deleted without an update before
//	Generic  the object is being deleted
//
// Combine it, by predicate.Or, with predicates that drop the update that starts a deletion, such as [SpecChanged]. Otherwise
// no reconcile runs the cleanup.
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

// isDeleted reports whether the object is being deleted.
func isDeleted(obj client.Object) bool {
	return !isNil(obj) && !obj.GetDeletionTimestamp().IsZero()
}
