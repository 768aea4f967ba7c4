package controllers_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/controllers"
)

func job(edit ...func(*batchv1.JobSpec)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: named("backup"), Spec: batchv1.JobSpec{Template: podTemplate("backup:1")}}
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	for _, e := range edit {
		e(&j.Spec)
	}
	return j
}

// conditionTypes returns the types of the conditions that are true, in their order.
func conditionTypes(j *batchv1.Job) (all []batchv1.JobConditionType) {
	for _, c := range j.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			all = append(all, c.Type)
		}
	}
	return all
}

func TestJobs(t *testing.T) {
	outcome := func(o batchv1.JobConditionType) step {
		return controllers.Jobs(func(*batchv1.Job) batchv1.JobConditionType { return o })
	}
	t.Run("Completes", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			j := job()
			c.create(j)
			var seen [][]batchv1.JobConditionType
			for c.step() {
				seen = append(seen, conditionTypes(load(c, j)))
			}
			assert.Empty(t, cmp.Diff([][]batchv1.JobConditionType{nil, {batchv1.JobSuccessCriteriaMet}, {batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}}, seen))
			status := load(c, j).Status
			assert.Equal(t, [3]int32{0, 1, 0}, [3]int32{status.Active, status.Succeeded, status.Failed})
			assert.Equal(t, "CompletionsReached", status.Conditions[1].Reason)
			assert.NotNil(t, status.StartTime)
			assert.NotNil(t, status.CompletionTime)
			require.Len(t, c.pods(), 1)
			for _, pod := range c.pods() {
				assert.Equal(t, corev1.PodSucceeded, pod.Status.Phase)
				assert.Equal(t, "backup", pod.Labels[batchv1.JobNameLabel])
			}
		}, outcome(batchv1.JobComplete))
	})
	t.Run("Fails", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			j := job()
			c.create(j)
			var seen [][]batchv1.JobConditionType
			for c.step() {
				seen = append(seen, conditionTypes(load(c, j)))
			}
			assert.Empty(t, cmp.Diff([][]batchv1.JobConditionType{nil, {batchv1.JobFailureTarget}, {batchv1.JobFailureTarget, batchv1.JobFailed}}, seen))
			status := load(c, j).Status
			assert.Equal(t, [3]int32{0, 0, 1}, [3]int32{status.Active, status.Succeeded, status.Failed})
			assert.Equal(t, "BackoffLimitExceeded", status.Conditions[1].Reason)
			assert.Nil(t, status.CompletionTime)
		}, outcome(batchv1.JobFailed))
	})
	t.Run("Runs", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			j := job(func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = new(int64(60)) })
			c.create(j)
			c.settle()
			status := load(c, j).Status
			assert.EqualValues(t, 1, status.Active)
			assert.EqualValues(t, 1, *status.Ready)
			assert.Empty(t, status.Conditions)
			time.Sleep(time.Minute)
			c.settle()
			assert.Equal(t, "DeadlineExceeded", load(c, j).Status.Conditions[1].Reason)
			assert.Empty(t, c.pods())
		}, outcome(""))
	})
	t.Run("OtherCondition", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(job())
			suspends := outcome(batchv1.JobSuspended)
			require.NoError(t, suspends(t.Context(), c), "it creates the pod")
			require.ErrorContains(t, suspends(t.Context(), c), `no Job ends with the condition "Suspended"`)
		})
	})
	t.Run("Completions", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			j := job(func(s *batchv1.JobSpec) {
				s.Completions, s.Parallelism, s.CompletionMode = new(int32(3)), new(int32(2)), new(batchv1.IndexedCompletion)
			})
			c.create(j)
			c.step()
			assert.EqualValues(t, 2, load(c, j).Status.Active)
			c.settle()
			assert.EqualValues(t, 3, load(c, j).Status.Succeeded)
			assert.Equal(t, "0-2", load(c, j).Status.CompletedIndexes)
			assert.Len(t, c.pods(), 3)
		}, outcome(batchv1.JobComplete))
	})
	t.Run("Suspended", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			j := job(func(s *batchv1.JobSpec) { s.Suspend = new(true) })
			c.create(j)
			c.settle()
			assert.Equal(t, []batchv1.JobConditionType{batchv1.JobSuspended}, conditionTypes(load(c, j)))
			assert.Nil(t, j.Status.StartTime)
			assert.Empty(t, c.pods())

			change(c, j, func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
			c.step()
			assert.EqualValues(t, 1, load(c, j).Status.Active)
			assert.Equal(t, "JobResumed", j.Status.Conditions[0].Reason)
			change(c, j, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
			c.settle()
			assert.Empty(t, c.pods(), "pods that have not ended are deleted")

			change(c, j, func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
			c.settle()
			assert.Equal(t, []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}, conditionTypes(load(c, j)))
		}, outcome(batchv1.JobComplete))
	})
	t.Run("TimeToLive", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			j := job(func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = new(int32(60)) })
			c.create(j)
			c.settle()
			time.Sleep(59 * time.Second)
			c.settle()
			assert.True(t, c.exists(j))
			time.Sleep(time.Second)
			c.settle()
			assert.False(t, c.exists(j))
			assert.Empty(t, c.pods(), "its pods are deleted with it")
		}, outcome(batchv1.JobComplete))
	})
	t.Run("ManagedByAnother", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(job(func(s *batchv1.JobSpec) { s.ManagedBy = new("example.com/queue") }))
			assert.False(t, c.step())
		}, outcome(batchv1.JobComplete))
	})
}

func TestCronJobs(t *testing.T) {
	steps := []step{controllers.CronJobs, controllers.Jobs(func(j *batchv1.Job) batchv1.JobConditionType {
		if j.Annotations["runs"] != "" {
			return ""
		}
		return batchv1.JobComplete
	})}
	cronJob := func(edit ...func(*batchv1.CronJobSpec)) *batchv1.CronJob {
		c := &batchv1.CronJob{ObjectMeta: named("backup"), Spec: batchv1.CronJobSpec{
			Schedule: "*/10 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job().Spec},
		}}
		for _, e := range edit {
			e(&c.Spec)
		}
		return c
	}
	endless := func(s *batchv1.CronJobSpec) { s.JobTemplate.Annotations = map[string]string{"runs": "yes"} }
	names := func(c *cluster) (names []string) {
		var list batchv1.JobList
		require.NoError(c.t, c.List(c.t.Context(), &list, client.InNamespace("default")))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	t.Run("History", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			cron := cronJob(func(s *batchv1.CronJobSpec) { s.SuccessfulJobsHistoryLimit = new(int32(1)) })
			c.create(cron)
			c.settle()
			assert.Empty(t, names(c), "nothing is due at the creation")
			time.Sleep(10 * time.Minute)
			c.step()
			assert.Len(t, load(c, cron).Status.Active, 1)
			c.settle()
			assert.Equal(t, []string{"backup-15778090"}, names(c), "named by the minute")
			assert.Empty(t, load(c, cron).Status.Active)
			assert.NotNil(t, cron.Status.LastSuccessfulTime)
			assert.Equal(t, "2000-01-01T00:10:00Z", cron.Status.LastScheduleTime.UTC().Format(time.RFC3339))
			time.Sleep(25 * time.Minute)
			c.settle()
			assert.Equal(t, []string{"backup-15778110"}, names(c), "of two missed runs the latest is made up for, and the oldest Job goes")
		}, steps...)
	})
	t.Run("Forbid", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(cronJob(endless, func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = batchv1.ForbidConcurrent }))
			time.Sleep(10 * time.Minute)
			c.settle()
			time.Sleep(10 * time.Minute)
			c.settle()
			assert.Equal(t, []string{"backup-15778090"}, names(c))
		}, steps...)
	})
	t.Run("Replace", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(cronJob(endless, func(s *batchv1.CronJobSpec) { s.ConcurrencyPolicy = batchv1.ReplaceConcurrent }))
			time.Sleep(10 * time.Minute)
			c.settle()
			time.Sleep(10 * time.Minute)
			c.settle()
			assert.Equal(t, []string{"backup-15778100"}, names(c))
			assert.Len(t, c.pods(), 1)
		}, steps...)
	})
	t.Run("Deadline", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(cronJob(func(s *batchv1.CronJobSpec) { s.StartingDeadlineSeconds = new(int64(60)) }))
			time.Sleep(12 * time.Minute)
			c.settle()
			assert.Empty(t, names(c))
		}, steps...)
	})
	t.Run("Suspended", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			c.create(cronJob(func(s *batchv1.CronJobSpec) { s.Suspend = new(true) }))
			time.Sleep(12 * time.Minute)
			c.settle()
			assert.Empty(t, names(c))
		}, steps...)
	})
}
