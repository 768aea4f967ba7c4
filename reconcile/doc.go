// Package reconcile composes named steps into a controller-runtime reconciler. A step does the work that is specific to a kind. The
// reconciler does the rest: it reads the object, handles its deletion, waits and retries, sets the conditions, and writes the status, at
// most once unless a step calls [Checkpoint].
//
//	reconcile.For[*cachev1alpha1.Memcached](mgr,
//		reconcile.Named("workload", ownedresources.Ensure(ownedresources.Build(deployment))),
//		reconcile.Named("pods", reconcile.Func(r.recordPods), reconcile.Watching(&corev1.Pod{}, podToMemcached)).
//			Reporting("Available"),
//	).Complete()
//
// # What to use
//
//   - [For] makes a reconciler with a manager and its watches, and [New] one with a client, for a builder of one's own or a test.
//   - [Named] gives a step its name. The methods of [NamedStep] give the step a condition, a finalizer, and references to other objects. [Watching]
//     gives the step a watch. [Func] makes a step of a function.
//   - A step returns nil or an error, such as [Wait], [Stalled], [Success], [SuccessUntil], [Halt] or [WithReason].
//   - Within a step, [Checkpoint] writes the status at once, [Eventf] emits an event, package secrets reads a Secret, [PatchLabels],
//     [PatchAnnotations] and [PatchOwnerReference] write metadata, and [Yield] lets other objects be reconciled.
//   - [NewManager], [CacheOptions], [TransformCompact] and [HashLargeValues] set up the manager.
//
// # One pass
//
// A pass is one reconcile of one object. The outcome of a step is what its returned error means: the step succeeded, waits, met a conflict,
// failed, or is stalled. If a step did not run, its outcome is skipped. A pass does this:
//
//   - The pass reads the object from the cache. If the object does not exist, the pass ends. If the object is being deleted,
//     the steps that have to clean up do so ([FinalizingStep]), and nothing else is done: the garbage collector deletes what
//     the object owns.
//   - If the object is paused ([PausedAnnotation]), the condition Paused is set, and nothing else is done.
//   - The finalizers of the steps are added ([NamedStep.Finalizer]), before any step can act outside of the cluster.
//   - Steps made by Ensure of package ownedresources are left out if they would find nothing to do. Such steps are left out
//     only if they come before the first step that has to run. A step that is left out counts as a success.
//   - The other steps run in order on a copy of the object. They may change the status of the copy. Whatever the outcome of a
//     step, the later steps run, unless the step halts the pass ([Halt]). A panic is a failure of its step.
//   - If each step has succeeded or waits, the steps of package ownedresources delete the children that they no longer build.
//   - The outcomes become conditions. Ready sums them up, Reconciling and Stalled follow kstatus, and each step may report a
//     condition of its own ([NamedStep.Reporting]). The observed generation is set, unless a step met a conflict or returned
//     [KeepConditions]. The pass finds the fields .status.conditions and .status.observedGeneration by these names, which the
//     Kubernetes API conventions prescribe. A status may lack either field.
//   - If the status differs from the status that was read, the pass writes the difference by one merge patch. The patch leaves
//     out fields that did not change. If the patch contains a list or removes a field, or if the status was empty, the patch
//     carries the resource version. Then it conflicts with any write of others since the object was read.
//
// # When the next pass runs
//
// An event of the object, or of an object that the steps watch, triggers a pass. Without an event the next pass runs
// after the shortest of these delays:
//
//   - the delay that a step asks for ([Wait], [Success], or another [Waiter]);
//   - after a failure, a backoff of the object from 250 ms to 1 minute, which doubles each time;
//   - 10 minutes after an error that only a change can remove: [Stalled], controller-runtime's TerminalError, a request that
//     the API server calls invalid, or one that it has called forbidden for longer than five minutes;
//   - if a request was forbidden: a backoff of at most a minute, for five minutes after the first refusal, and always while
//     the object is being deleted.
//
// [Reconciler.WithRetries] sets the backoff and the 10 minutes. [RequestedAnnotation] requests a pass now.
//
// Up to a tenth is added to these delays, so that objects do not run at the same time; the delay of a [Waiter] stays exact.
// If the API server asks to wait longer (Retry-After), the pass waits that long. A conflict is not a failure: the pass is
// repeated after the backoff, without a warning. The sixth conflict in a row is a failure.
//
// Reconcile does not return an error for any of these, because controller-runtime ignores a delay beside an error.
// Failures are logged, emitted as events, and shown in the conditions. Waits are shown in the conditions.
//
// # What a step may read
//
// The client of a step reads the kind of the object, and the kinds that a step watches ([Watching]) or references
// ([NamedStep.Reads]). Reading any other kind is an error that names the missing option. Without it, a forgotten watch would
// show only in production, where a change of such an object triggers nothing.
//
// # Metrics
//
// [Reconciler.Complete] and [Reconciler.SetupWithBuilder] register these metrics in controller-runtime's registry:
// opblocks_step_duration_seconds, opblocks_step_results_total with the label result (succeeded, waiting, conflicted, failed,
// stalled), and opblocks_condition (1 for True, 0 for False, -1 for Unknown).
//
// # Tracing
//
// [Reconciler.WithTracer] sets an OpenTelemetry tracer, which gets a span for each pass and each step. The default is none.
package reconcile
