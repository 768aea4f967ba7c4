// Package scheduledjobs runs a Job at each due time of a schedule, as a step of package reconcile. It is for custom resources
// that have a schedule among their fields; for a plain Job by schedule, create a CronJob.
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
// Package schedule decides what is due: with its rules for missed runs, time zones, daylight saving time, starting
// deadlines, blackout windows and spread. [Spec] has the options of package schedule, and these options of a CronJob:
// concurrency policy, history limits and suspend.
//
// Facts to know:
//   - The Job of a scheduled time is named after its owner and that time: web-29412480. The annotation
//     opblocks.dev/scheduled-time has the time.
//   - A Job is never changed once it exists: a change of the owner shows in the next one. Jobs that somebody else created are
//     left alone, also copies of ours under another name.
//   - Each run starts once, whenever the operator crashes and however Jobs vanish. So a Job is created suspended, with the
//     annotation opblocks.dev/held. The run is recorded in the status, and then the Job is started. A Job that was deleted,
//     by its TTL or by a history limit of 0, does not run again.
//   - If the status is lost, the Jobs show what was run, and the schedule takes effect anew: nothing that was missed is run.
//   - The garbage collector deletes the Jobs with their owner. The step adds no finalizer.
//   - An owner has to be namespaced, and its status has to be written by the pass.
package scheduledjobs
