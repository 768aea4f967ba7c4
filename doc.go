// Package opblocks is the guide to this module: reconcile building blocks for Kubernetes operators on controller-runtime.
// It contains no code. A reader meets the packages in this order:
//
//   - [github.com/opblocks/opblocks/reconcile] composes named steps into a reconciler. A step is a function. The reconciler
//     does what every operator needs: fetching, finalizers, waiting, backoff, conditions, and one status write at most. One
//     call of Reconcile for one object is called a pass.
//   - [github.com/opblocks/opblocks/ownedresources] creates, applies and prunes the objects that an object owns. It sends no
//     request if they are as wanted, and does not touch what others own. It is a step, or a plain function.
//   - [github.com/opblocks/opblocks/ownedresources/workload] restarts workloads that somebody else owns, and observes their
//     rollouts.
//   - [github.com/opblocks/opblocks/conditions] sets, reads and summarizes status conditions, of type metav1.Condition or of
//     a struct of your own.
//   - [github.com/opblocks/opblocks/finalizers] runs a cleanup before an object is removed, and leaves the finalizers of
//     others alone.
//   - [github.com/opblocks/opblocks/predicates] selects the events that trigger a reconcile, without losing those that matter.
//   - [github.com/opblocks/opblocks/schedule] decides when something is due: cron, time zone, missed runs, starting deadline,
//     blackout windows, spread, and how many may run at once.
//   - [github.com/opblocks/opblocks/reconcile/reconciletest] tests an operator: it runs a scenario on an API server in memory,
//     with every single fault at every single point, and logs the requests for ordinary tests.
//
// Each package works alone in an existing controller-runtime project. The folder examples contains whole operators that are
// built from them.
package opblocks
