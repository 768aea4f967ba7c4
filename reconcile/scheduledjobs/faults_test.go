//go:build !race

// The tests of this file explore faults. They run one reconcile at a time, so the race detector would find nothing in
// them, and they would take ten times as long.

package scheduledjobs_test

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/opblocks/opblocks/reconcile/reconciletest"
)

// TestSurvivesEveryFault runs scenarios with everything to which the step reacts. It runs each scenario with every
// fault at every point, except that the faults at the creation are tried only in the scenario "History": until the first run is
// due, the creation is the same in all of them. If a schedule is suspended or changed later,
// its first run is the same too.
func TestSurvivesEveryFault(t *testing.T) {
	newBackup := func(edit ...func(*BackupSpec)) *Backup { // runs every ten minutes
		return newBackup(append(edit, func(s *BackupSpec) { s.Schedule = "*/10 * * * *" })...)
	}
	backup := newBackup()
	edit := func(change func(*BackupSpec)) reconciletest.Action {
		return reconciletest.Change(backup, func(b *Backup) { change(&b.Spec) })
	}
	created := []reconciletest.Action{reconciletest.Create(backup).WithoutFaults()} // and has run once
	for _, action := range nextRun {
		created = append(created, action.WithoutFaults())
	}
	tests := map[string][]reconciletest.Action{
		"History": slices.Concat(
			[]reconciletest.Action{reconciletest.Create(newBackup(func(s *BackupSpec) { s.SuccessfulJobsHistoryLimit = new(int32(1)) }))},
			nextRun, nextRun, []reconciletest.Action{reconciletest.Delete(backup)},
		),
		"NoHistory": slices.Concat(
			[]reconciletest.Action{reconciletest.Create(newBackup(func(s *BackupSpec) { s.SuccessfulJobsHistoryLimit = new(int32(0)) })).WithoutFaults()},
			nextRun, []reconciletest.Action{edit(func(s *BackupSpec) { s.Image = "backup:2" })},
		),
		"TTL": slices.Concat(
			[]reconciletest.Action{reconciletest.Create(newBackup(func(s *BackupSpec) { s.TTL = new(int32(0)) })).WithoutFaults()},
			nextRun, []reconciletest.Action{edit(func(s *BackupSpec) { s.Image = "backup:2" })}, nextRun,
		),
		"Forbid": slices.Concat(
			[]reconciletest.Action{reconciletest.Create(newBackup(func(s *BackupSpec) {
				s.ConcurrencyPolicy, s.Image = batchv1.ForbidConcurrent, "endless"
			})).WithoutFaults()},
			nextRun, nextRun, []reconciletest.Action{finish("web-15778090")}, nextRun[1:],
		),
		"Replace": slices.Concat(
			[]reconciletest.Action{reconciletest.Create(newBackup(func(s *BackupSpec) {
				s.ConcurrencyPolicy, s.Image = batchv1.ReplaceConcurrent, "endless"
			})).WithoutFaults()},
			nextRun, nextRun,
		),
		"Suspended": slices.Concat(
			created,
			[]reconciletest.Action{edit(func(s *BackupSpec) { s.Suspend = true })}, nextRun,
			[]reconciletest.Action{edit(func(s *BackupSpec) { s.Suspend = false })}, nextRun,
		),
		"Rescheduled": slices.Concat(
			created,
			[]reconciletest.Action{edit(func(s *BackupSpec) { s.Schedule = "0-59/10 * * * *" })}, nextRun,
			[]reconciletest.Action{edit(func(s *BackupSpec) { s.Schedule = "0 0 30 2 *" })},
		),
	}
	for name, actions := range tests {
		t.Run(name, func(t *testing.T) {
			s := scenario(actions...)
			if name == "Rescheduled" {
				s.Unready = []reconciletest.Unready{{Object: backup, Reason: "InvalidSchedule"}}
			}
			s.Options.Pairs = 20
			reconciletest.Explore(t, s)
		})
	}
}
