package memoryserver

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var cronJobKind = builtInKind{
	like: &batchv1.CronJob{}, resource: "cronjobs", status: true, counted: true,
	behaviour: behaviour{
		defaults: on(func(c *batchv1.CronJob) {
			unset(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
			absent(&c.Spec.Suspend, false)
			absent(&c.Spec.SuccessfulJobsHistoryLimit, 3)
			absent(&c.Spec.FailedJobsHistoryLimit, 1)
			defaultJobSpec(&c.Spec.JobTemplate.Spec)
		}),
		check: checked(func(c *batchv1.CronJob) (errs field.ErrorList) {
			if c.Spec.Schedule == "" {
				errs = append(errs, field.Required(specPath.Child("schedule"), ""))
			}
			errs = append(errs, checkNotNegative(specPath, number{"successfulJobsHistoryLimit", c.Spec.SuccessfulJobsHistoryLimit},
				number{"failedJobsHistoryLimit", c.Spec.FailedJobsHistoryLimit})...)
			return append(errs, checkJobSpec(&c.Spec.JobTemplate.Spec, specPath.Child("jobTemplate", "spec"))...)
		}),
	},
}
