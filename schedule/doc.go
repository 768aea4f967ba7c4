// Package schedule decides when a run of a periodic task is due. It consists of pure functions over times, and has no
// goroutine and no state in memory. The status of an object stores everything that has to be remembered. So a restart of
// the operator neither loses a run nor repeats one.
//
// [Parse] parses a schedule and a time zone. [Due] decides whether to start a run now, and when to decide again. [Offset]
// spreads the runs of many objects over time. [ParseBlackoutWindows] parses times of the week in which nothing starts.
// [Candidate.MayStart] limits how many objects run at once. [Options] and [Status] are structs for a spec and a status to embed;
// [Status.Decide] calls all of the above with them.
//
//	s, err := schedule.Parse(job.Spec.Schedule, job.Spec.TimeZone)
//	…
//	d, err := schedule.Due(clock.Now(), schedule.Input{
//		Schedule: s, Since: job.Status.ScheduleSince, LastScheduleTime: job.Status.LastScheduleTime,
//	})
//	…
//	if d.Verdict == schedule.Start { … }
//	return ctrl.Result{RequeueAfter: d.RequeueAfter(clock.Now())}, nil
//
// These words have one meaning throughout. A scheduled time is a time of the schedule. The due time of a run is its
// scheduled time plus the offset: from then on the run is due. A blackout window delays the start of a run, but does not
// change its due time.
//
// Facts to know:
//   - If several scheduled times were missed, only the latest one runs, once, and only if the starting deadline allows it.
//     It is found in bounded time, even if a schedule of every minute was missed for a year.
//   - When clocks are set forward, a time of day that is skipped runs right after the jump. When clocks are set back, a
//     time of day that occurs twice runs once, the first time. So each time of day runs exactly once a day. A schedule
//     for every hour (0 * * * *, */5 * * * *) follows elapsed time instead. This is the rule of cron(8). CronJob and
//     robfig/cron omit a skipped time and run a repeated time twice.
//   - An interval (@every) counts from the time when the schedule took effect, not from the start of the operator.
//   - A schedule without any time, such as 0 0 30 2 * (February 30th), is an error. February 29th is valid, even across the
//     eight years around 2100 without a February 29th, where robfig/cron gives up.
//   - Times are whole seconds, in the years 1 to 9999.
//   - In [Input], the times and the deadline are pointers as in the API, where nil means unset.
//
// Time zones are names of the IANA database, as in CronJob since KEP-3140:
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-apps/3140-TimeZone-support-in-CronJob. If the machine has this
// database, it is used, because the operating system keeps it up to date. Otherwise the database of the Go version that built
// the program is used. This package links Go's database (time/tzdata, 450 kB) into every program that imports it. Go usually
// leaves that choice to the program. But images of operators usually have no database. A time zone that works on a developer's
// machine would then be unknown in the cluster.
//
// All functions and types are safe for concurrent use, except a [Status] that is being changed.
package schedule
