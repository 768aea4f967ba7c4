// Package opblocks is the map of this module: reconcile building blocks for Kubernetes operators on controller-runtime.
// It holds no code. In the order in which a reader meets them, the packages are:
//
//   - [github.com/opblocks/opblocks/reconcile]: one pass over one object, from fetch to status, composed of named steps.
//     A step is a function; the pass does what is alike in every operator: waiting, backoff, conditions, one status write.
//   - [github.com/opblocks/opblocks/ownedresources]: make the API server hold what an object owns, with no request when it
//     already does, and without touching what others own. As a step, or as a plain function.
//   - [github.com/opblocks/opblocks/ownedresources/workload]: restart workloads that somebody else owns, and observe their
//     rollouts.
//   - [github.com/opblocks/opblocks/conditions]: set, read and sum up status conditions, over metav1.Condition or a struct
//     of one's own.
//   - [github.com/opblocks/opblocks/finalizers]: run cleanup before an object goes, and touch no one else's finalizers.
//   - [github.com/opblocks/opblocks/predicates]: say which events bring a pass, without losing those that matter.
//   - [github.com/opblocks/opblocks/schedule]: say when something is due: cron, time zone, missed runs, windows, spread.
//   - [github.com/opblocks/opblocks/reconcile/reconciletest]: test an operator: an API server in memory, a ledger of
//     requests, and every single fault at every single point.
//
// Each works alone in an existing controller-runtime project. Whole operators made of them are in the folder examples.
package opblocks
