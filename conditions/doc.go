// Package conditions sets, reads and sums up status conditions.
//
// [Set] stores a condition and says whether anything changed, [Get] and [IsTrue] read one, [Remove] takes one away, and
// [Summarize] makes one of many. They work on []metav1.Condition. [NewEditor] gives the same over a condition struct of one's
// own, once an [Adapter] says how it reads and is written. [List] is one object's conditions for generic code.
//
// The facts:
//   - lastTransitionTime moves when the status changes and at no other time, as the Kubernetes API conventions want:
//     https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
//     A new reason, message or observedGeneration is a change to write, but no transition.
//   - Setting what is there changes nothing, so the object need not be written. For the same reason a message must hold
//     no time, counter or pointer that differs from pass to pass.
//   - Slices are replaced, never written into: a shallow copy of a cached object is safe to edit.
//   - Order is kept. New conditions go to the end.
//   - What the API server would refuse is an error here ([ErrInvalid]) and stores nothing; only an over-long message is
//     cut instead, because it often comes from outside and should not cost the rest of the status.
//   - A summary is never True while a part is Unknown.
//
// Functions are safe for concurrent use on different lists; one list needs one writer at a time.
package conditions
