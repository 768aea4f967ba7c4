// Package reconcile composes named steps into a controller-runtime reconciler. A step does what is particular to a kind.
// The reconciler does the rest: it reads the object, handles its deletion, waits and retries, sets the conditions, and
// writes the status at most once.
//
//	reconcile.For[*cachev1alpha1.Memcached](mgr,
//		reconcile.Named("workload", ownedresources.Ensure(ownedresources.Build(deployment))),
//		reconcile.Named("pods", reconcile.Func(r.recordPods),
//			reconcile.Reporting("Available"), reconcile.Watching(&corev1.Pod{}, podToMemcached)),
//	).Complete()
//
// # One pass
//
// A pass is one reconcile of one object:
//
//   - The object is read from the cache. If it is gone, nothing is done. If it is being deleted, the steps that have to
//     clean up do so ([FinalizingStep]), and nothing else is done: the garbage collector deletes what the object owns.
//   - If the object is paused ([PausedAnnotation]), the condition Paused is set, and nothing else is done.
//   - The finalizers of the steps are added ([Finalizer]), before any step can act outside of the cluster.
//   - The steps run in order on a copy of the object, whose status they may change. A step succeeds, waits ([Wait]), or
//     fails. In either case the later steps run, unless the step halts the pass ([Halt]). A panic is a failure of its step.
//   - If no step has failed, children that are no longer built are deleted. Package ownedresources registers that.
//   - The outcomes become conditions. Ready sums them up, Reconciling and Stalled follow kstatus, and each step may report
//     a condition of its own ([Reporting]). The observed generation is set, unless a conflict repeats the pass. The fields
//     .status.conditions and .status.observedGeneration are found by these names, as the Kubernetes API conventions
//     have them; a status may lack either.
//   - If the status differs from the one that was read, the difference is written by one merge patch. It conflicts with
//     another writer of the same list, and leaves all other fields alone.
//
// # When the next pass runs
//
// An event of the object, or of what the steps watch, triggers a pass. Without an event the next pass runs after the
// shortest of these delays:
//
//   - the delay that a step waits for;
//   - after a failure, a backoff of the object from 250 ms to 1 minute, which doubles each time;
//   - 10 minutes after an error that only a change can heal: [Stalled], and what the API server calls invalid or, for
//     longer than about a minute, forbidden.
//
// Up to a tenth is added to these delays, except to those of [Wait], so that objects do not run at the same time. If the
// API server asks to wait longer (Retry-After), the pass waits that long. A conflict is not a failure: the pass is repeated
// quietly, but five conflicts in a row are followed by a failure.
//
// Reconcile returns no error for any of these, because controller-runtime ignores a delay beside an error. They are
// logged, emitted as events, and shown in the conditions.
//
// # What a step may read
//
// The client of a step reads the kind of the object, and the kinds that a step watches ([Watching]) or references
// ([Referencing]). It refuses all other kinds: a forgotten watch shows only in production, where a change of such an object
// triggers nothing.
package reconcile
