// Package schedule says when something is due. It is a set of pure functions over times: nothing runs in the background, and
// all there is to remember stands in an object's status, so that a restart neither loses a run nor repeats one.
//
// [Parse] reads a schedule and a time zone, [Due] decides whether a run has to start now and when to look again, [Offset]
// spreads many objects over a time, [ParseBlackoutWindows] keeps times of the week free, and [MayStart] limits how many run at once.
// [Options] and [Status] have what they take, for a spec and a status to embed, and [Status.Decide] joins them.
//
//	s, err := schedule.Parse(job.Spec.Schedule, job.Spec.TimeZone)
//	…
//	d, err := schedule.Due(clock.Now(), schedule.Input{Schedule: s, Since: job.Status.Since, LastRun: job.Status.LastRun})
//	…
//	if d.Verdict == schedule.Start { … }
//	return ctrl.Result{RequeueAfter: d.After(clock.Now())}, nil
//
// The facts:
//   - Of the times that were missed, the latest is run, once, if the starting deadline allows. It is found at once, after a
//     year of missed minutes too.
//   - When the clock is set forward, a time of day that it jumps over comes right after the jump; when it is set back, one
//     that it shows twice comes once, the first time. So a day has each of its times once. A schedule of every hour
//     (0 * * * *, */5 * * * *) goes by real time instead. This is the rule of cron(8); CronJob and robfig/cron leave out the
//     first and repeat the second.
//   - An interval (@every) counts from when the schedule began to hold, not from the start of the operator.
//   - A schedule that never comes, such as 0 0 30 2 *, is an error. One on February 29th comes, also after the eight years
//     around 2100, for which robfig/cron gives up.
//   - Times are whole seconds, in the years 1 to 9999.
//
// Zones are those of the IANA database, as in CronJob since KEP-3140:
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-apps/3140-TimeZone-support-in-CronJob. The machine's database is
// used if it has one, which its distribution keeps up to date; else the one of the Go version that built the program. That is
// linked into whatever imports this package (time/tzdata, 450 kB), though Go leaves the choice to programs: images without a
// database are the rule for operators, and a zone that is known on the desk and unknown in the cluster is found too late.
//
// Everything is safe for concurrent use. Fields that [Due] reads are pointers as the API has them, so that nil means unset.
package schedule
