// Package workload restarts workloads that somebody else owns, and observes their rollouts.
//
// A workload here is a Deployment, a StatefulSet or a DaemonSet. The functions neither need to own it nor take its
// fields from its owner:
//
//   - [Restart] replaces its pods, as kubectl rollout restart does, once for each time at which a restart is due.
//   - [CheckRestart] reports what blocks a restart.
//   - [ObserveRestart] observes the rollout of a restart to its end, and [ObserveRollout] that of any change.
//
// Restart sends at most one request. The other functions send none: they look at the object that they are given, which
// may come from a cache. Whether a rollout is complete follows the rules of kstatus
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md).
package workload
