// Package reconcile composes named steps into a controller-runtime reconciler that gets the
// rest right: fetching, deletion, waiting, backoff, conditions, and one status write at most.
//
//	reconcile.For[*cachev1alpha1.Memcached](mgr,
//		reconcile.Named("workload", ownedresources.Ensure(ownedresources.Build(deployment))),
//		reconcile.Named("pods", reconcile.Func(r.recordPods),
//			reconcile.Reporting("Available"), reconcile.Watching(&corev1.Pod{}, podToMemcached)),
//	).Complete()
//
// # One pass
//
//   - The object is read from the cache. If it is gone, nothing is done. If it is being deleted, the
//     steps that have to clean up do ([FinalizingStep]); what it owns is collected by owner references.
//   - If it is paused ([PausedAnnotation]), a condition says so, and nothing else is done.
//   - The steps' finalizers are added ([Finalizer]), before any step can act outside of the cluster.
//   - The steps run in order on a copy, of which they may change the status. A step succeeds,
//     waits ([Wait]), or fails. Neither stops the later steps, unless it halts ([Halt]). A panic
//     is a failure of its step.
//   - What steps have left for the end ([AfterSteps]) is done, if none failed: deleting.
//   - The outcomes become conditions: Ready sums them up, Reconciling and Stalled follow kstatus,
//     and each step may report one of its own ([Reporting]). The observed generation is set
//     unless a conflict lets the pass be repeated. .status.conditions and
//     .status.observedGeneration are found by these names, as the Kubernetes API conventions
//     have them, where the status has them.
//   - If the status differs from the one read, the difference is written: one merge patch, which
//     loses against another writer of the same list and leaves other fields alone.
//
// # When the next pass comes
//
// On an event of the object or of what the steps watch. Beyond that, after the shortest delay
// that a step waits for; after a failure, with an exponential backoff of its own for the object,
// from 250 ms to 1 minute, each up to a tenth longer; after an error that only a change can heal
// ([Stalled], and what the API server calls invalid), in 10 minutes. A conflict is no failure:
// the pass is repeated quietly. Where the API server asks to wait (Retry-After), no pass comes earlier.
//
// Reconcile never returns an error for these, since controller-runtime would ignore the delay
// beside it; they are logged, and shown in the conditions.
//
// # What a step may read
//
// The object's own kind, and what a step watches ([Watching]) or refers to ([Referencing]). Other
// kinds are refused, because a forgotten watch shows only in production: nothing happens when such
// an object changes.
package reconcile
