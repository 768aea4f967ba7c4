// Package opblocks is the guide to this module: reconcile building blocks for Kubernetes operators on controller-runtime. It
// contains no code. These are the packages, in the order in which to read them:
//
//   - [github.com/opblocks/opblocks/reconcile] composes named steps into a reconciler. A step is a function. The reconciler
//     does what every operator needs: fetching, finalizers, waiting, backoff, conditions, and one status write at most. One
//     call of Reconcile for one object is called a pass.
//   - [github.com/opblocks/opblocks/ownedresources] creates, applies and prunes the objects that an object owns. It sends no
//     request if they are already as desired, and changes nothing that others own. A child is built from its owner and from
//     declared inputs, one after another if need be. Use it as a step, or call it as a plain function.
//   - [github.com/opblocks/opblocks/ownedresources/overlay] merges a user's patch, which is a field of the custom resource, into
//     a pod template.
//   - [github.com/opblocks/opblocks/ownedresources/workload] restarts workloads that somebody else owns, and observes their
//     rollouts.
//   - [github.com/opblocks/opblocks/conditions] sets, reads and summarizes status conditions, of type metav1.Condition or of
//     a struct of your own.
//   - [github.com/opblocks/opblocks/finalizers] runs a cleanup before an object is removed, and leaves the finalizers of
//     others alone.
//   - [github.com/opblocks/opblocks/predicates] selects the events that trigger a reconcile, without losing those that matter.
//   - [github.com/opblocks/opblocks/reconcile/ratcheting] makes the validator of a webhook of a function. It refuses what an update adds, and
//     not what an object had before.
//   - [github.com/opblocks/opblocks/schedule] decides when a periodic task is due: by cron schedule, time zone, missed runs,
//     starting deadline and blackout windows. It also spreads the runs of many objects, and limits how many run at once.
//   - [github.com/opblocks/opblocks/reconcile/scheduledjobs] is a step that runs a Job at each due time of a schedule.
//   - [github.com/opblocks/opblocks/reconcile/external] is a step for what Kubernetes does not know, such as an account in an API.
//   - [github.com/opblocks/opblocks/reconcile/startqueue] limits how many objects of a kind run at once, as a step's watch and
//     a question that the step asks.
//   - [github.com/opblocks/opblocks/reconcile/upgrade] says what a new version of an operator would change in a cluster, before
//     it runs there.
//   - [github.com/opblocks/opblocks/reconcile/storageversion] writes stored objects in the storage version, so that an old version
//     of a custom resource can be removed.
//   - [github.com/opblocks/opblocks/reconcile/reconciletest] tests an operator: it runs a scenario on an API server in
//     memory, once for each fault at each point where that can strike. For ordinary tests it records the requests.
//   - [github.com/opblocks/opblocks/reconcile/reconciletest/fakeapi] stands in for an API outside of the cluster in such a test.
//   - [github.com/opblocks/opblocks/reconcile/reconciletest/controlplane] starts a real control plane for tests, with or without
//     controllers and simulated nodes. The command cmd/controlplane starts one for a shell.
//
// Each package works alone in an existing controller-runtime project. The folder examples contains whole operators that are
// built from them.
package opblocks
