// Package conditions sets, reads, removes and sums up status conditions.
//
//	_, changed, err := conditions.Set(&app.Status.Conditions, metav1.Condition{
//		Type: "Available", Status: metav1.ConditionTrue, Reason: "Served", ObservedGeneration: app.Generation,
//	})
//	…
//	_, summaryChanged, err := conditions.Set(&app.Status.Conditions, conditions.Summarize(app.Status.Conditions, conditions.Summary{}))
//
// [Set] stores a condition and reports whether the list changed. [Get] and [IsTrue] read a condition, [Remove] removes one, and [Summarize]
// computes one condition, such as Ready, from the others, as a [Summary] says. They work on []metav1.Condition. For another condition
// struct, write an [Adapter] and pass it to [NewEditor], which returns the same functions for the struct. [List] gives generic code access
// to the conditions of one object, whatever their Go type is. [History] is for APIs whose list is a history, to which new entries are only
// added.
//
// Facts that hold for all functions:
//   - lastTransitionTime changes if and only if the status changes, as the Kubernetes API conventions require:
//     https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
//     A new reason, message or observedGeneration is a change that has to be written, but not a transition.
//   - Setting a condition that is already stored changes nothing, so the object need not be written. For the same reason a
//     message must contain nothing that differs in each reconcile, such as a time, a counter or the address of a pointer.
//   - A change replaces the slice. The old array is never written to, so you can edit a shallow copy of a cached object.
//   - The order of the list is kept. New conditions are added at the end.
//   - A condition that the API server would refuse is an error ([ErrInvalid]), and nothing is stored. The only exception is
//     a message that is too long: it is cut, because it often comes from outside and must not prevent the status update.
//   - A summary is never True while one of its conditions is Unknown.
//
// All functions are safe for concurrent use on different lists. A list must not be changed by two goroutines at once.
package conditions
