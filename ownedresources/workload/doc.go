// Package workload restarts workloads that somebody else owns, and observes their rollouts and their pods.
//
//	blocker, err := workload.CheckRestart(web, due, c.Scheme())
//	if err != nil || blocker.Reason != "" {
//		return err // and say why in a condition
//	}
//	restarted, err := workload.Restart(ctx, c, web, due, "nightly.example.com")
//
// A workload is a Deployment, a StatefulSet or a DaemonSet. Its owner does not change: the functions set no owner reference, and no field
// except the annotation of a restart.
//
//   - [Restart] replaces its pods, as kubectl rollout restart does, once for each time at which a restart is due.
//   - [CheckRestart] returns what blocks a restart.
//   - [CheckStart] returns why pods do not start, such as ImagePullBackOff.
//   - [ObserveRestart] observes the rollout of a restart to its end, and [ObserveRollout] the rollout of any change.
//
// Restart sends at most one request. The other functions send none: they use the object that is passed, which may come from a cache.
// Whether a rollout is complete is decided by the rules of kstatus
// (https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md), and by what the update strategy of the workload leaves
// to others: see ObserveRollout.
package workload
