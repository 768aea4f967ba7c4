// Package scheduledjobs runs a Job at each due time of a schedule, as a step of package reconcile. It is for custom resources
// that have a schedule among their fields. If you only need to run a Job on a schedule, create a CronJob.
//
//	type BackupSpec struct {
//		scheduledjobs.Spec `json:",inline"`
//		…
//	}
//	type BackupStatus struct {
//		scheduledjobs.Status `json:",inline"`
//		…
//	}
//
//	reconcile.Named("backup", scheduledjobs.New(
//		func(b *Backup) (scheduledjobs.Spec, *scheduledjobs.Status) { return b.Spec.Spec, &b.Status.Status },
//		backupJob, // func(b *Backup, scheduled time.Time) (*batchv1.Job, error)
//	))
//
// Package schedule decides which run is due, with its rules for missed runs, time zones, daylight saving time,
// starting deadlines, blackout windows and spread. [Spec] has the options of package schedule, and these options of a
// CronJob: concurrency policy, history limits and suspend.
//
// Facts to know:
//   - The name of a Job has the name of its owner and the scheduled time: web-29412480. The annotation
//     opblocks.dev/scheduled-time has the time too.
//   - A Job is never changed once it exists: a change of the owner takes effect in the next Job. The step does not change Jobs that
//     somebody else created, even if they are copies of our Jobs under another name.
//   - Each run starts once, whenever the operator crashes and whoever deletes Jobs. So the step first creates a suspended Job
//     with the annotation opblocks.dev/held, then records the run in the status, and then starts the Job. If a Job was
//     deleted, also by its TTL or by a history limit of 0, its run does not start again.
//   - If the status is lost, the Jobs show which runs have started, and the schedule takes effect anew: missed runs do not
//     start.
//   - The garbage collector deletes the Jobs with their owner. The step adds no finalizer.
//   - An owner has to be namespaced, and the pass has to write its status.
package scheduledjobs
