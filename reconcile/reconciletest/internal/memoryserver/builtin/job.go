package builtin

import (
	"fmt"
	"maps"
	"math"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var jobKind = description{
	prototype: &batchv1.Job{}, resource: "jobs", hasStatus: true, hasGeneration: true, orphanDependents: true,
	behaviour: behaviour{
		setDefaults:      forObject(defaultJob),
		prepareForCreate: forObject(generateSelector),
		validate:         forValidation(validateJob),
		validateUpdate:   forUpdateValidation(validateJobUpdate),
	},
}

func defaultJob(job *batchv1.Job) {
	defaultJobSpec(&job.Spec)
	if len(job.Labels) == 0 {
		job.Labels = job.Spec.Template.Labels // both share one map, as on the real server: labels that are added to the template are also added here
	}
	if job.Spec.Completions == nil && job.Spec.Parallelism == nil {
		job.Spec.Completions = ptr.To[int32](1)
	}
	setIfNil(&job.Spec.Parallelism, 1)
	limit := int32(6)
	if job.Spec.BackoffLimitPerIndex != nil {
		limit = math.MaxInt32
	}
	setIfNil(&job.Spec.BackoffLimit, limit)
	setIfNil(&job.Spec.CompletionMode, batchv1.NonIndexedCompletion)
	setIfNil(&job.Spec.Suspend, false)
	replacement := batchv1.TerminatingOrFailed
	if job.Spec.PodFailurePolicy != nil {
		replacement = batchv1.Failed
	}
	setIfNil(&job.Spec.PodReplacementPolicy, replacement)
	setIfNil(&job.Spec.ManualSelector, false)
}

// defaultJobSpec sets the defaults of a Job. The Job template of a CronJob gets the same ones.
func defaultJobSpec(spec *batchv1.JobSpec) {
	defaultPodSpec(&spec.Template.Spec)
	if spec.PodFailurePolicy == nil {
		return
	}
	for _, rule := range spec.PodFailurePolicy.Rules {
		for i := range rule.OnPodConditions {
			setIfZero(&rule.OnPodConditions[i].Status, corev1.ConditionTrue)
		}
	}
}

// generateSelector makes the job select its pods by its UID. Otherwise two jobs with the same template would select each other's pods.
func generateSelector(job *batchv1.Job) {
	if ptr.Deref(job.Spec.ManualSelector, false) {
		return
	}
	makeIfNil(&job.Spec.Template.Labels)
	maps.Copy(job.Spec.Template.Labels, generatedLabels(job))
	setIfNil(&job.Spec.Selector, metav1.LabelSelector{})
	makeIfNil(&job.Spec.Selector.MatchLabels)
	job.Spec.Selector.MatchLabels[batchv1.ControllerUidLabel] = string(job.UID)
}

func makeIfNil(m *map[string]string) {
	if *m == nil {
		*m = map[string]string{}
	}
}

func validateJob(job *batchv1.Job) field.ErrorList {
	errs := validateJobSpec(&job.Spec, specPath)
	selector := job.Spec.Selector
	if selector == nil {
		errs = append(errs, field.Required(specPath.Child("selector"), ""))
	}
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err == nil && !parsed.Matches(labels.Set(job.Spec.Template.Labels)) {
		errs = append(errs, field.Invalid(specPath.Child("template", "metadata", "labels"), job.Spec.Template.Labels, "`selector` does not match template `labels`"))
	}
	if selector == nil || ptr.Deref(job.Spec.ManualSelector, false) {
		return errs
	}
	own := generatedLabels(job)
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if job.Spec.Template.Labels[key] != own[key] {
			errs = append(errs, field.Required(specPath.Child("template", "metadata", "labels").Key(key), "must be '"+own[key]+"'"))
		}
	}
	if parsed, err := metav1.LabelSelectorAsSelector(selector); err == nil && !parsed.Matches(labels.Set(own)) {
		errs = append(errs, field.Invalid(specPath.Child("selector"), selector, "`selector` not auto-generated"))
	}
	return errs
}

// generatedLabels returns the labels of a job's pods. Each label is there twice: with a domain, and in its older form without a domain.
func generatedLabels(job *batchv1.Job) map[string]string {
	return map[string]string{
		"job-name": job.Name, batchv1.JobNameLabel: job.Name,
		"controller-uid": string(job.UID), batchv1.ControllerUidLabel: string(job.UID),
	}
}

func validateJobSpec(spec *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := validateNotNegative(path, numberField{"parallelism", spec.Parallelism}, numberField{"completions", spec.Completions},
		numberField{"backoffLimit", spec.BackoffLimit}, numberField{"ttlSecondsAfterFinished", spec.TTLSecondsAfterFinished})
	errs = append(errs, validatePodTemplate(&spec.Template, path.Child("template"))...)
	if spec.Template.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		errs = append(errs, field.Required(path.Child("template", "spec", "restartPolicy"),
			fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)))
	}
	return errs
}

// validateJobTemplateUpdate allows changes of scheduling and resources while the job is suspended and has not started.
func validateJobTemplateUpdate(obj, live *batchv1.Job) field.ErrorList {
	if !ptr.Deref(live.Spec.Suspend, false) || live.Status.StartTime != nil || live.Status.Active > 0 {
		return immutable(&obj.Spec.Template, &live.Spec.Template, "spec", "template")
	}
	spec, allowed := &obj.Spec.Template.Spec, live.Spec.Template.Spec.DeepCopy()
	allowed.NodeSelector, allowed.Tolerations, allowed.SchedulingGates = spec.NodeSelector, spec.Tolerations, spec.SchedulingGates
	copyResources(spec.Containers, allowed.Containers)
	copyResources(spec.InitContainers, allowed.InitContainers)
	return immutable(*spec, *allowed, "spec", "template", "spec")
}

func copyResources(obj, allowed []corev1.Container) {
	for i := range allowed {
		if i < len(obj) {
			allowed[i].Resources = obj[i].Resources
		}
	}
}

func validateJobUpdate(obj, live *batchv1.Job) field.ErrorList {
	errs := immutable(obj.Spec.Selector, live.Spec.Selector, "spec", "selector")
	if ptr.Deref(obj.Spec.CompletionMode, batchv1.NonIndexedCompletion) != batchv1.IndexedCompletion {
		errs = append(immutable(obj.Spec.Completions, live.Spec.Completions, "spec", "completions"), errs...)
	}
	errs = append(errs, validateJobTemplateUpdate(obj, live)...)
	errs = append(errs, immutable(obj.Spec.CompletionMode, live.Spec.CompletionMode, "spec", "completionMode")...)
	errs = append(errs, immutable(obj.Spec.PodFailurePolicy, live.Spec.PodFailurePolicy, "spec", "podFailurePolicy")...)
	errs = append(errs, immutable(obj.Spec.BackoffLimitPerIndex, live.Spec.BackoffLimitPerIndex, "spec", "backoffLimitPerIndex")...)
	return append(errs, immutable(obj.Spec.ManagedBy, live.Spec.ManagedBy, "spec", "managedBy")...)
}

var cronJobKind = description{
	prototype: &batchv1.CronJob{}, resource: "cronjobs", hasStatus: true, hasGeneration: true,
	behaviour: behaviour{
		setDefaults: forObject(func(c *batchv1.CronJob) {
			setIfZero(&c.Spec.ConcurrencyPolicy, batchv1.AllowConcurrent)
			setIfNil(&c.Spec.Suspend, false)
			setIfNil(&c.Spec.SuccessfulJobsHistoryLimit, 3)
			setIfNil(&c.Spec.FailedJobsHistoryLimit, 1)
			defaultJobSpec(&c.Spec.JobTemplate.Spec)
		}),
		validate: forValidation(func(c *batchv1.CronJob) (errs field.ErrorList) {
			if c.Spec.Schedule == "" {
				errs = append(errs, field.Required(specPath.Child("schedule"), ""))
			}
			errs = append(errs, validateNotNegative(specPath, numberField{"successfulJobsHistoryLimit", c.Spec.SuccessfulJobsHistoryLimit},
				numberField{"failedJobsHistoryLimit", c.Spec.FailedJobsHistoryLimit})...)
			return append(errs, validateJobSpec(&c.Spec.JobTemplate.Spec, specPath.Child("jobTemplate", "spec"))...)
		}),
	},
}
